"""In place of the hub's package `datasets`, for llama.cpp's speed_bench.py: there is no hub here. The
rows are those of a file, OUTRIDER_SPEED_BENCH_ROWS, one JSON object a line."""

import json
import os
import pathlib


class Rows(list):
    def __getitem__(self, key):
        return [row[key] for row in self] if isinstance(key, str) else super().__getitem__(key)


def get_dataset_config_names(repo):
    return ["qualitative"]


def load_dataset(repo, name, split):
    lines = pathlib.Path(os.environ["OUTRIDER_SPEED_BENCH_ROWS"]).read_text().splitlines()
    return Rows(json.loads(line) for line in lines)
