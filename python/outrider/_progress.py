"""Progress of loading: to a callback, or as a line."""

from __future__ import annotations

import dataclasses
import sys
from typing import Callable, Optional, TextIO, Union


@dataclasses.dataclass(frozen=True)
class Loading:
    """How far the load of a model is: `role` is "target" or "draft", `fraction` from 0 to 1."""

    role: str
    path: str
    fraction: float


Progress = Union[bool, None, Callable[[Loading], object]]


class ProgressLine:
    """One line that is written anew: "loading target: 42 %". Terminals and notebooks both go back to
    the line's beginning for a carriage return."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._shown = ""

    def __call__(self, loading: Loading) -> None:
        text = f"loading {loading.role}: {int(100 * loading.fraction)} %"
        if text != self._shown:
            self._out.write("\r" + text.ljust(len(self._shown)))
            self._out.flush()
            self._shown = text

    def clear(self) -> None:
        """Takes the line away."""
        if self._shown:
            self._out.write("\r" + " " * len(self._shown) + "\r")
            self._out.flush()


class Reporter:
    """`progress` as given: a callback; True for a line on stderr; None for one on a terminal only;
    False for nothing."""

    def __init__(self, progress: Progress) -> None:
        self._line: Optional[ProgressLine] = None
        self._callback: Optional[Callable[[Loading], object]] = None
        if callable(progress):
            self._callback = progress
        elif progress or (progress is None and sys.stderr is not None and sys.stderr.isatty()):
            self._line = ProgressLine(sys.stderr)
            self._callback = self._line

    def report(self, loading: Loading) -> None:
        """Shows it, where anything is shown."""
        if self._callback is not None:
            self._callback(loading)

    def end(self) -> None:
        """Loading is over."""
        if self._line is not None:
            self._line.clear()
