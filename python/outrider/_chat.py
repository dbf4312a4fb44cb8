"""A conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

from ._result import Completion
from ._stream import AsyncStream, Stream

if TYPE_CHECKING:
    from ._runtime import Outrider


def merged(defaults: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """The options of a call in the place of defaults. `speculative` and `drafter` both say whether
    there are guesses: one in the call takes the place of the other where that says the opposite."""
    rest = dict(defaults)
    if "drafter" in options and "speculative" not in options:
        if (options["drafter"] == "none") != (rest.get("speculative", True) is False):
            rest.pop("speculative", None)
    if options.get("speculative", False) is not False and rest.get("drafter") == "none":
        del rest["drafter"]
    return {**rest, **options}


class Chat:
    """A conversation: `messages` holds what was said, as the models' chat templates take it, and may
    be read and changed between answers. An answer that fails, is cancelled or is left early leaves
    it as it was. Of one thread, or task, at a time."""

    def __init__(self, outrider: Outrider, system: Optional[str], options: dict[str, Any]) -> None:
        self._outrider = outrider
        self._options = options
        self.messages: list[dict[str, Any]] = []
        if system is not None:
            self.messages.append({"role": "system", "content": system})

    def send(self, text: str, **options: Any) -> Completion:
        """The answer to `text`. Its message is `.message["content"]`, without thoughts."""
        with self.stream(text, **options) as stream:
            for _ in stream:
                pass
            return stream.result

    def stream(self, text: str, **options: Any) -> Stream:
        """The answer as it comes."""
        said = self._with(text)
        return self._outrider._stream(said, merged(self._options, options), self._remember(said))

    async def asend(self, text: str, **options: Any) -> Completion:
        """send() for asyncio."""
        stream = self.astream(text, **options)
        async for _ in stream:
            pass
        return stream.result

    def astream(self, text: str, **options: Any) -> AsyncStream:
        """stream() for asyncio."""
        said = self._with(text)
        return self._outrider._astream(said, merged(self._options, options), self._remember(said))

    def _with(self, text: str) -> list[dict[str, Any]]:
        return [*self.messages, {"role": "user", "content": text}]

    def _remember(self, said: list[dict[str, Any]]) -> Any:
        def end(completion: Completion) -> None:
            if completion.finish_reason == "cancelled":
                return
            answer = completion.message or {"role": "assistant", "content": completion.text}
            self.messages = [*said, {"role": "assistant", **answer}]

        return end
