"""In place of the package `tqdm`: no bar of progress."""


def tqdm(futures, **bar):
    return futures
