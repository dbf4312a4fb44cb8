"""Local language models that answer faster with the same text: speculative decoding of GGUF files.

    import outrider

    with outrider.Outrider("target.gguf", "draft.gguf") as o:
        answer = o.generate("Once upon a time", max_tokens=64)
        print(answer.text, answer.speculation["acceptance_rate"])
        for piece in o.stream([{"role": "user", "content": "Hello"}]):
            print(piece.text, end="")

Options have the names of the command's options with `_` for `-`; options() lists them."""

from ._chat import Chat
from ._library import Error, version
from ._progress import Loading
from ._result import Completion, Piece, Speculation, Timings, Usage
from ._runtime import Outrider, options
from ._stream import AsyncStream, Stream

__all__ = ["AsyncStream", "Chat", "Completion", "Error", "Loading", "Outrider", "Piece",
           "Speculation", "Stream", "Timings", "Usage", "options", "version"]
__version__ = version()
