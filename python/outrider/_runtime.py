"""Models and what they are asked for."""

from __future__ import annotations

import collections.abc
import functools
import os
import reprlib
import weakref
from types import TracebackType
from typing import Any, Optional, Sequence, Union

from . import _waits
from ._chat import Chat, merged
from ._library import WAIT_MS, Error, Instance, encode
from ._progress import Loading, Progress, Reporter
from ._result import Completion
from ._stream import AsyncStream, OnEnd, Run, Stream
from ._threads import Keeper, Threads

Path = Union[str, "os.PathLike[str]"]
Message = dict[str, Any]
Prompt = Union[str, Sequence[Union[str, int]], Sequence[Message]]

# As the command has it: a draft model has the target's options, but for these. The first are its
# own, the others the library refuses for a draft.
OF_THE_TARGET_ALONE = ("gpu_layers", "cache_type_k", "cache_type_v",
                       "workers", "worker_timeout_s", "isolate", "head", "mtp", "exact", "widest")
NO_PROMPTS = (bytes, bytearray, memoryview, collections.abc.Mapping, collections.abc.Set)


@functools.lru_cache(maxsize=None)
def options() -> dict[str, dict[str, str]]:
    """Names of options and what they mean: "model" for Outrider(...), with "draft_" in front for the
    draft model; "completion" for generate(...), or as a default for Outrider(...). Besides,
    Outrider(...) takes the fields of outrider_create (outrider.h): slots, suffix_store, ..."""
    instance = Instance({})
    try:
        methods = {method["name"]: method["parameters"]
                   for method in instance.call("system.methods")["methods"]}
    finally:
        instance.close()
    not_options = ("role", "path", "drafter", "tier")
    model = {p["name"]: p["help"] for p in methods["model.load"] if p["name"] not in not_options}
    completion = {p["name"]: p["help"] for p in methods["completion.start"]
                  if p["name"] not in ("prompt", "messages")}
    return {"model": model, "completion": completion}


class Outrider:
    """A target, perhaps with a draft model, and the completions on them. Any thread may use it, and
    many at once; `slots` (4) of them run at the same time. For `with`, or close()."""

    def __init__(self, target: Path, draft: Optional[Path] = None, *, progress: Progress = None,
                 **options: Any) -> None:
        """Loads the models and waits for them; what a first load measures may take half a minute.

        `progress`: a function that is called with Loading; True for a line on stderr; False for none;
        by default a line where stderr is a terminal or a notebook's. Raises Error, whose `field` is
        "target", "draft" or the option that is wrong."""
        models, self._defaults, config = _sorted_options(options)
        config["model"] = {"path": _text(target, "target"), **models["target"]}
        if draft is not None:
            config["draft"] = {"path": _text(draft, "draft"), **models["draft"]}
        elif models["given_for_draft"]:
            name = models["given_for_draft"][0]
            raise Error(f"{name}: there is no draft model", name, "invalid_argument")
        self._instance = _create(config)
        self._threads = Threads()
        self._keeper = Keeper(config.get("retention_ms"))
        # At the latest when the process ends: then nothing in the library may go on.
        self._finalizer = weakref.finalize(self, _end, self._keeper, self._threads, self._instance)
        try:
            self._wait_loaded(Reporter(progress), with_draft=draft is not None)
        except BaseException:
            self.close()
            raise

    def generate(self, prompt: Prompt, **options: Any) -> Completion:
        """The text that follows `prompt`: a text (or texts and token ids), or the messages of a
        conversation, {"role", "content"}. Options as in options()["completion"]. Raises Error."""
        with self._stream(prompt, options) as stream:  # which an interrupt anywhere cancels
            for _ in stream:
                pass
            return stream.result

    def stream(self, prompt: Prompt, **options: Any) -> Stream:
        """The same as it comes: pieces with `.text`, `.tokens` and `.by`; then `.result`."""
        return self._stream(prompt, options)

    async def agenerate(self, prompt: Prompt, **options: Any) -> Completion:
        """generate() for asyncio. A cancelled task cancels the completion."""
        stream = self._astream(prompt, options)
        async for _ in stream:
            pass
        return stream.result

    def astream(self, prompt: Prompt, **options: Any) -> AsyncStream:
        """stream() for asyncio."""
        return self._astream(prompt, options)

    def chat(self, system: Optional[str] = None, **options: Any) -> Chat:
        """A conversation, with options for all of its answers."""
        return Chat(self, system, options)

    def tokenize(self, text: str, **options: Any) -> list[int]:
        """Token ids, as the target has them."""
        tokens: list[int] = self.call("tokenize", text=text, **options)["tokens"]
        return tokens

    def detokenize(self, tokens: Sequence[int]) -> str:
        """The text of token ids."""
        text: str = self.call("detokenize", tokens=list(tokens))["text"]
        return text

    def stats(self) -> dict[str, Any]:
        """Counts since the start: tokens, steps, how much was drafted and accepted, by whom."""
        counts: dict[str, Any] = self.call("stats")
        return counts

    def call(self, method: str, **params: Any) -> Any:
        """Any other method of the C interface: call("system.methods") lists them. An interrupt, or
        close(), ends one that waits."""
        if method == "completion.run":
            return self._ran(params)
        return _waits.call(self._instance, method, params)

    def close(self) -> None:
        """Ends completions that go on, and frees the models. Again: no effect."""
        _end(self._keeper, self._threads, self._instance)
        self._finalizer.detach()

    def __enter__(self) -> Outrider:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

    def _stream(self, prompt: Prompt, options: dict[str, Any],
                on_end: Optional[OnEnd] = None) -> Stream:
        params = self._params(prompt, options)
        return Stream(Run(self, self._instance, params, on_end, self._keeper))

    def _astream(self, prompt: Prompt, options: dict[str, Any],
                 on_end: Optional[OnEnd] = None) -> AsyncStream:
        params = self._params(prompt, options)
        start = functools.partial(Run, self, self._instance, params, on_end, self._keeper)
        return AsyncStream(start, self._threads)

    def _ran(self, params: dict[str, Any]) -> dict[str, Any]:
        """completion.run: by polls, since it waits for as long as a text takes."""
        run = Run(self, self._instance, params)
        try:
            while run.raw is None:
                run.fetch(WAIT_MS)
        except BaseException:
            run.cancel()
            raise
        return run.raw

    def _params(self, prompt: Prompt, options: dict[str, Any]) -> dict[str, Any]:
        given = merged(self._defaults, options)
        if isinstance(prompt, str):
            return {**given, "prompt": prompt}
        if isinstance(prompt, NO_PROMPTS) or not isinstance(prompt, collections.abc.Iterable):
            raise Error(f"prompt is {reprlib.repr(prompt)}, but must be a text, texts and token ids, or messages",
                        "prompt", "invalid_argument")
        parts = list(prompt)
        name = "messages" if any(isinstance(part, dict) for part in parts) else "prompt"
        return {**given, name: parts}

    def _wait_loaded(self, reporter: Reporter, with_draft: bool) -> None:
        roles = ("target", "draft") if with_draft else ("target",)
        try:
            while True:
                status = self.call("system.status", wait_ms=WAIT_MS)
                loading = [role for role in roles if status[role]["state"] == "loading"]
                reporter.report([Loading(role, status[role]["path"], status[role]["progress"])
                                 for role in loading])
                # Without a target a draft waits for the next one, and here there will be none.
                if not loading or status["target"]["state"] not in ("loading", "ready"):
                    break
            reporter.report([Loading(role, status[role]["path"], 1.0) for role in roles
                             if status[role]["state"] == "ready"])
        finally:
            reporter.end()
        for role in roles:
            error = status[role]["error"]
            if status[role]["state"] != "ready":
                raise Error(f"{role}: {error['message'] if error else status[role]['state']}", role,
                            error["code"] if error else None)
        for drafter in status["drafters"]:
            for file in drafter["files"]:
                if file["error"]:
                    raise Error(file["error"]["message"], file["option"], file["error"]["code"])


def _end(keeper: Keeper, threads: Threads, instance: Instance) -> None:
    """Each may be closed again, so that an interrupt leaves nothing that a second time does not end."""
    keeper.close()
    threads.close()
    instance.close()


def _text(path: Path, field: str) -> str:
    try:
        text = os.fspath(path)
        text.encode()
    except (TypeError, AttributeError, UnicodeEncodeError):
        raise Error(f"{field} is {path!r}, but must be the path of a GGUF file, in UTF-8", field,
                    "invalid_argument") from None
    return text


def _sorted_options(given: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any],
                                                    dict[str, Any]]:
    """The models' options by role, the completions' defaults, and what is the instance's. Unknown
    names are the instance's, which refuses them by name."""
    encode(given)  # here an error has the option's name as it was given
    known = options()
    target: dict[str, Any] = {}
    draft: dict[str, Any] = {}
    defaults: dict[str, Any] = {}
    config: dict[str, Any] = {}
    for name, value in given.items():
        if name in known["completion"]:
            defaults[name] = value
        elif name in known["model"]:
            target[name] = value
        elif name.startswith("draft_") and name[len("draft_"):] in known["model"]:
            draft[name] = value
        elif name in ("model", "draft"):
            raise Error(f"{name}: unknown; models are the first two arguments", name,
                        "invalid_argument")
        else:
            config[name] = value
    shared = {name: value for name, value in target.items() if name not in OF_THE_TARGET_ALONE}
    own = {name[len("draft_"):]: value for name, value in draft.items()}
    return ({"target": target, "draft": {**shared, **own}, "given_for_draft": list(draft)},
            defaults, config)


def _create(config: dict[str, Any]) -> Instance:
    """An error of "model.ctx" is one of the option ctx, of "draft.ctx" one of draft_ctx; of the paths
    it is one of "target" and "draft"."""
    try:
        return Instance(config)
    except Error as error:
        role, _, name = (error.field or "").partition(".")
        if not name:
            raise
        if name == "path":
            field = "draft" if role == "draft" else "target"
        else:
            field = f"draft_{name}" if role == "draft" else name
        message = str(error).replace(f"{role}.{name}", field, 1)
        raise Error(message, field, error.code) from None
