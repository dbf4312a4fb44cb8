"""Calls that wait for long, cut into waits of WAIT_MS: an interrupt (Ctrl-C) and close() come through
between two of them."""

from __future__ import annotations

import time
from typing import Any

from ._library import WAIT_MS, Instance

LONGEST_MS = 3_600_000  # more is the library's to refuse


def call(instance: Instance, method: str, params: dict[str, Any]) -> Any:
    """A method's result, also with a long "wait_ms". Not for completion.run."""
    wait_ms = params.get("wait_ms")
    if not isinstance(wait_ms, int) or not WAIT_MS < wait_ms <= LONGEST_MS:
        return instance.call(method, **params)
    end = time.monotonic() + wait_ms / 1000
    while True:
        begun = time.monotonic()
        left_ms = max(0, int(1000 * (end - begun)))
        slice_ms = min(left_ms, WAIT_MS)
        answer = instance.call(method, **{**params, "wait_ms": slice_ms})
        ended_itself = time.monotonic() - begun < slice_ms / 1000
        if ended_itself or slice_ms == left_ms or _has_news(answer):
            return answer


def _has_news(answer: Any) -> bool:
    """Whether it must be handed out: a poll's text comes once."""
    return bool(answer.get("updates") or answer.get("finished"))
