"""The threads of an Outrider: those that wait for asyncio, and the one that fetches what is not read."""

from __future__ import annotations

import concurrent.futures
import threading
import weakref
from typing import Any, Callable, Optional, Protocol, TypeVar

from ._library import closed

T = TypeVar("T")

MOST_THREADS = 64  # for asyncio: completions that are waited for at once
RETENTION_MS = 60_000  # outrider_create's default
SHORTEST_S, LONGEST_S = 0.01, 10.0  # between two looks


class Threads:
    """For asyncio. They are made when they are needed."""

    def __init__(self) -> None:
        self._executor = concurrent.futures.ThreadPoolExecutor(MOST_THREADS, "outrider")
        self._closed = False

    def submit(self, work: Callable[[], T]) -> concurrent.futures.Future[T]:
        """Does it on a thread. Raises Error after close()."""
        try:
            return self._executor.submit(work)
        except RuntimeError:
            if self._closed:
                raise closed() from None
            raise

    def close(self) -> None:
        """What has been submitted is still done. Again: no effect."""
        self._closed = True
        self._executor.shutdown(wait=False)


class Kept(Protocol):
    """A completion whose text may be fetched early."""

    def keep(self) -> bool:
        """Fetches what there is, without waiting. False: there is nothing more to come."""


class Keeper:
    """Fetches the texts that nobody reads at the moment: the library drops a finished one that was not
    fetched for `retention_ms`, but a reader may pause for as long as he likes. One thread that wakes
    every 10 seconds. A completion that nobody has any more is not kept. Without a lock of its own,
    which an interrupt could leave locked: each step on the set is one for Python."""

    def __init__(self, retention_ms: Any) -> None:
        known = isinstance(retention_ms, int) and retention_ms > 0  # else the library refuses it
        quarter_s = (retention_ms if known else RETENTION_MS) / 4000
        self.interval_s = min(max(quarter_s, SHORTEST_S), LONGEST_S)
        self._runs: set[weakref.ref[Kept]] = set()
        self._open = threading.Lock()  # until close()
        self._open.acquire()
        self._thread = threading.Thread(target=self._go_on, name="outrider-keeper", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:  # the process ends, or may have no more threads: texts must be read in time
            pass

    def add(self, run: Kept) -> None:
        """From now on `run` is kept."""
        self._runs.add(weakref.ref(run, self._runs.discard))

    def close(self) -> None:
        """Ends it. Again: no effect."""
        try:
            self._open.release()
        except RuntimeError:
            pass

    def _go_on(self) -> None:
        while not self._open.acquire(timeout=self.interval_s):
            for known in list(self._runs):
                run = known()
                if run is None or not run.keep():
                    self._runs.discard(known)
                del run  # not held on to while it sleeps
