"""What completions give."""

from __future__ import annotations

import codecs
import dataclasses
from typing import Any, Optional, TypedDict


class Usage(TypedDict):
    """Tokens: of the prompt, of those the ones that had been read before, and of the text."""

    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int


class Timings(TypedDict):
    """Milliseconds, and tokens a second; None where there was nothing to measure."""

    prompt_ms: float
    prompt_per_second: Optional[float]
    predicted_ms: float
    predicted_per_second: Optional[float]
    first_token_ms: Optional[float]


class Speculation(TypedDict, total=False):
    """How much was guessed and how much of it was right; docs/glossary.md has the words."""

    enabled: bool
    rule: str
    exactness: Optional[str]
    reason: Optional[str]
    steps: int
    drafted: int
    accepted: int
    emitted: int
    tokens_per_step: Optional[float]
    acceptance_rate: Optional[float]
    draft_ms: float
    verify_ms: float
    sample_ms: float
    plan_ms: float
    plain_ms: Optional[float]
    drafters: dict[str, dict[str, Any]]


@dataclasses.dataclass(frozen=True)
class Piece:
    """A part of a text as it comes: `by` is who guessed its tokens, a drafter's name, or "target"
    for what the target said itself. The pieces' texts together are the completion's text."""

    text: str
    tokens: list[int]
    by: str


@dataclasses.dataclass(frozen=True)
class Completion:
    """A finished text. `finish_reason` is "stop", "length" or "cancelled". `message` is the answer of
    a conversation, {"role", "content", ...}, without thoughts; None for a plain prompt. `raw` is the
    whole result object, as `outrider run --json` prints it."""

    text: str
    tokens: list[int]
    finish_reason: str
    usage: Usage
    timings: Timings
    speculation: Speculation
    message: Optional[dict[str, Any]]
    raw: dict[str, Any] = dataclasses.field(repr=False)

    @classmethod
    def of(cls, raw: dict[str, Any]) -> Completion:
        """From the result object."""
        return cls(text=raw["text"], tokens=raw["tokens"], finish_reason=raw["finish_reason"],
                   usage=raw["usage"], timings=raw["timings"], speculation=raw["speculation"],
                   message=raw.get("message"), raw=raw)

    def __str__(self) -> str:
        return self.text

    def stats(self) -> str:
        """One line: how fast it was, and how much was guessed right."""
        parts = [f"{self.usage['completion_tokens']} tokens"]
        speed = self.timings["predicted_per_second"]
        if speed is not None:
            parts.append(f"{speed:.1f} tokens/s")
        said = self.speculation
        rate = said.get("acceptance_rate")
        if rate is None:
            parts.append(said.get("reason") or "nothing was guessed")
        else:
            parts.append(f"{said.get('tokens_per_step') or 0:.2f} tokens a step, {rate:.0%} of "
                         f"{said['drafted']} guesses right")
        return ", ".join(parts)


class PieceCutter:
    """Cuts updates into pieces of one origin. A character that several tokens make up is part of the
    piece that completes it."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def cut(self, updates: list[dict[str, Any]], finished: bool) -> list[Piece]:
        """The pieces of `updates`, of which the last are `finished`."""
        pieces: list[Piece] = []
        for token in (token for update in updates for token in update["tokens"]):
            data = bytes(token["bytes"]) if "bytes" in token else token["text"].encode()
            text = self._decoder.decode(data)
            if pieces and pieces[-1].by == token["by"]:
                last = pieces.pop()
                pieces.append(Piece(last.text + text, [*last.tokens, token["id"]], last.by))
            else:
                pieces.append(Piece(text, [token["id"]], token["by"]))
        rest = self._decoder.decode(b"", final=True) if finished else ""
        if rest:
            pieces.append(Piece(rest, [], "target"))
        return pieces
