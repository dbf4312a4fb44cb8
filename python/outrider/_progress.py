"""Progress of loading: to a callback, or as a line."""

from __future__ import annotations

import dataclasses
import sys
from typing import Callable, Optional, Sequence, TextIO, Union


@dataclasses.dataclass(frozen=True)
class Loading:
    """How far the load of a model is: `role` is "target" or "draft", `fraction` from 0 to 1."""

    role: str
    path: str
    fraction: float


Progress = Union[bool, None, Callable[[Loading], object]]


class ProgressLine:
    """One line that is written anew, with all models that load: "loading target: 42 %, draft: 0 %".
    Terminals and notebooks both go back to the line's beginning for a carriage return."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._shown = ""

    def __call__(self, models: Sequence[Loading]) -> None:
        text = "loading " + ", ".join(f"{m.role}: {int(100 * m.fraction)} %" for m in models)
        if text != self._shown:
            self._out.write("\r" + text.ljust(len(self._shown)))
            self._out.flush()
            self._shown = text

    def clear(self) -> None:
        """Takes the line away."""
        if self._shown:
            self._out.write("\r" + " " * len(self._shown) + "\r")
            self._out.flush()


def _shows_lines(out: Optional[TextIO]) -> bool:
    """Whether somebody reads it who sees a line replaced: a terminal, or a notebook, whose stream says
    that it is no terminal."""
    return out is not None and (out.isatty() or type(out).__module__.startswith("ipykernel."))


class Reporter:
    """`progress` as given: a callback; True for a line on stderr; None for one on a terminal or in a
    notebook only; False for nothing."""

    def __init__(self, progress: Progress) -> None:
        self._line: Optional[ProgressLine] = None
        self._callback: Optional[Callable[[Loading], object]] = None
        if callable(progress):
            self._callback = progress
        elif progress or (progress is None and _shows_lines(sys.stderr)):
            self._line = ProgressLine(sys.stderr)

    def report(self, models: Sequence[Loading]) -> None:
        """Shows those that load, where anything is shown. They come together: of two lines, one for
        each, only the last could be read."""
        if self._line is not None and models:
            self._line(models)
        if self._callback is not None:
            for model in models:
                self._callback(model)

    def end(self) -> None:
        """Loading is over."""
        if self._line is not None:
            self._line.clear()
