"""The module on a tiny pair of models: texts, pieces, errors, threads, conversations."""

from __future__ import annotations

import concurrent.futures
import gc
import io
import os
import pathlib
import subprocess
import sys
import threading
from typing import Any, Callable, Union

import pytest

import outrider
from outrider._library import Instance
from outrider._progress import ProgressLine, Reporter
from outrider._result import PieceCutter
from outrider._runtime import OF_THE_TARGET_ALONE

from conftest import DRAFT, TARGET

PROMPT = "Once upon a time"
ENDLESS: dict[str, Any] = {"max_tokens": 3000, "ignore_eos": True}


def wait_until_idle(o: outrider.Outrider) -> int:
    """Waits for the completions that run; how many have finished."""
    while True:
        stats = o.stats()
        if stats["running"] == 0 and stats["queued"] == 0:
            finished: int = stats["finished"]
            return finished


def test_speculation_changes_no_text_and_is_counted(o: outrider.Outrider) -> None:
    plain = o.generate(PROMPT, max_tokens=32, speculative=False)
    fast = o.generate(PROMPT, max_tokens=32, width=4, drafter="draft-model")
    assert (fast.text, fast.tokens) == (plain.text, plain.tokens)
    assert plain.speculation["drafted"] == 0
    assert fast.speculation["drafted"] > 0
    assert fast.speculation["drafters"]["draft-model"]["drafted"] == fast.speculation["drafted"]
    assert fast.finish_reason == "length"
    assert fast.usage["completion_tokens"] == len(fast.tokens) == 32
    assert fast.timings["predicted_ms"] > 0
    assert str(fast) == fast.text
    assert "of %d guesses right" % fast.speculation["drafted"] in fast.stats()


def test_another_seed_gives_another_text(o: outrider.Outrider) -> None:
    assert o.generate(PROMPT, max_tokens=32, seed=2).text != o.generate(PROMPT, max_tokens=32).text


def test_pieces_together_are_the_text_and_say_who_guessed(o: outrider.Outrider) -> None:
    stream = o.stream(PROMPT, max_tokens=64, width=4)
    pieces = list(stream)
    assert "".join(piece.text for piece in pieces) == stream.result.text
    assert [token for piece in pieces for token in piece.tokens] == stream.result.tokens
    guessed = sum(len(piece.tokens) for piece in pieces if piece.by != "target")
    assert 0 < guessed <= stream.result.speculation["accepted"]
    assert next(stream, None) is None


def test_a_character_of_several_tokens_is_in_the_piece_that_completes_it() -> None:
    euro = list("€".encode())
    def token(number: int, data: list[int], by: str) -> dict[str, Any]:
        return {"id": number, "text": "", "bytes": data, "by": by}
    cutter = PieceCutter()
    first = [{"tokens": [token(1, euro[:1], "target"), token(2, euro[1:], "suffix")]}]
    assert [(p.text, p.by) for p in cutter.cut(first, False)] == [("", "target"), ("€", "suffix")]
    last = cutter.cut([{"tokens": [token(3, euro[:2], "target")]}], True)
    assert "".join(piece.text for piece in last) == "\ufffd"


def test_a_stream_that_is_left_early_is_cancelled(o: outrider.Outrider) -> None:
    before, tokens = wait_until_idle(o), o.stats()["generated_tokens"]
    for _ in o.stream(PROMPT, **ENDLESS):
        break
    gc.collect()
    stream = o.stream(PROMPT, **ENDLESS)
    next(stream)
    stream.close()
    assert list(stream) == []
    with pytest.raises(outrider.Error, match="not come to its end"):
        stream.result
    assert wait_until_idle(o) == before + 2
    assert o.stats()["generated_tokens"] - tokens < 6000


def test_a_stream_keeps_the_models_that_it_reads_from() -> None:
    pieces = outrider.Outrider(TARGET).stream(PROMPT, max_tokens=8)
    gc.collect()
    list(pieces)
    assert len(pieces.result.tokens) == 8


def test_an_exception_while_waiting_cancels(o: outrider.Outrider,
                                            monkeypatch: pytest.MonkeyPatch) -> None:
    before = wait_until_idle(o)
    stream = o.stream(PROMPT, **ENDLESS)
    def interrupted() -> None:
        raise KeyboardInterrupt
    monkeypatch.setattr(stream._run, "poll", interrupted)
    with pytest.raises(KeyboardInterrupt):
        next(stream)
    assert wait_until_idle(o) == before + 1


@pytest.mark.parametrize("wrong, field", [
    (lambda o: o.generate(PROMPT, top_p=7), "top_p"),
    (lambda o: o.generate(PROMPT, top_pp=0.5), "top_pp"),
    (lambda o: o.generate(PROMPT, temp=object()), "temp"),
    (lambda o: o.generate(PROMPT, temp=float("nan")), "temp"),
    (lambda o: o.generate(PROMPT, speculative={"width": -3}), "speculative.width"),
    (lambda o: o.generate(5), "prompt"),
    (lambda o: o.generate({"role": "user", "content": "Hello"}), "prompt"),
    (lambda o: o.generate(b"Hello"), "prompt"),
    (lambda o: o.generate({"Hello"}), "prompt"),
    (lambda o: o.generate("half \ud83d"), "prompt"),
    (lambda o: o.generate(PROMPT, stop=["half \udc00"]), "stop"),
    (lambda o: o.generate(PROMPT, speculative={"half \udc00": 1}), "speculative"),
    (lambda o: o.generate([{"role": "nobody", "content": ""}]), "messages[0].role"),
    (lambda o: outrider.Outrider("none.gguf"), "target"),
    (lambda o: outrider.Outrider("none.gguf", DRAFT), "target"),
    (lambda o: outrider.Outrider(""), "target"),
    (lambda o: outrider.Outrider(TARGET, ""), "draft"),
    (lambda o: outrider.Outrider(3), "target"),  # type: ignore[arg-type]
    (lambda o: outrider.Outrider(TARGET, "none.gguf"), "draft"),
    (lambda o: outrider.Outrider("half \ud83d"), "target"),
    (lambda o: outrider.Outrider(TARGET, kernels="half \ud83d"), "kernels"),
    (lambda o: outrider.Outrider(TARGET, ctx=-7), "ctx"),
    (lambda o: outrider.Outrider(TARGET, DRAFT, draft_ctx=-7), "draft_ctx"),
    (lambda o: outrider.Outrider(TARGET, draft_ctx=64), "draft_ctx"),
    (lambda o: outrider.Outrider(TARGET, slots=99), "slots"),
    (lambda o: outrider.Outrider(TARGET, nonsense=1), "nonsense"),
    (lambda o: outrider.Outrider(TARGET, suffix_store="none.store"), "suffix_store"),
    (lambda o: outrider.Outrider(TARGET, ngram_static=pathlib.Path("none")), "ngram_static"),
    (lambda o: o.call("no.such.method"), "method"),
])
def test_an_error_names_its_field(o: outrider.Outrider, field: str,
                                  wrong: Callable[[Any], object]) -> None:
    with pytest.raises(outrider.Error) as caught:
        wrong(o)
    assert caught.value.field == field
    assert caught.value.code in ("invalid_argument", "not_found", "method_not_found")
    assert field in str(caught.value) or "'none" in str(caught.value)


def test_options_are_listed_and_defaults_are_for_all_completions() -> None:
    listed = outrider.options()
    assert {"ctx", "kernels"} <= set(listed["model"])
    assert {"max_tokens", "temp", "width"} <= set(listed["completion"])
    with outrider.Outrider(TARGET, max_tokens=3, slots=1, ctx=256) as o:
        assert len(o.generate(PROMPT).tokens) == 3
        assert len(o.generate(PROMPT, max_tokens=5).tokens) == 5
        assert o.call("system.status")["n_ctx"] == 256


def test_what_a_call_says_of_speculation_takes_the_place_of_a_default() -> None:
    def drafted(o: outrider.Outrider, **options: Any) -> int:
        done = o.generate(PROMPT, max_tokens=32, ignore_eos=True, **options)
        guesses: int = done.speculation["drafted"]
        return guesses
    with outrider.Outrider(TARGET, DRAFT, seed=1, width=4, drafter="draft-model") as o:
        assert drafted(o) > 0
        assert drafted(o, speculative=False) == 0
        with pytest.raises(outrider.Error) as caught:
            drafted(o, drafter="none", speculative=True)
        assert caught.value.field == "speculative"
    with outrider.Outrider(TARGET, DRAFT, seed=1, width=4, drafter="none") as o:
        assert drafted(o) == 0
        assert drafted(o, speculative={"drafters": ["draft-model"]}) > 0
    with outrider.Outrider(TARGET, DRAFT, seed=1, width=4, speculative=False) as o:
        assert drafted(o) == 0
        assert drafted(o, drafter="draft-model") > 0


def refused_for_a_draft(name: str, values: list[Any]) -> bool:
    """Whether the library says of one of `values` that the option `name` is a target's."""
    said = []
    for value in values:
        try:
            Instance({"draft": {"path": "none.gguf", name: value}}).close()
        except outrider.Error as error:
            said.append(str(error))
    refused = any("is for a target" in message for message in said)
    assert refused or len(said) < len(values), f"no value of {name} is right"
    return refused


def test_options_of_the_target_alone_are_not_given_to_a_draft() -> None:
    values = ["off", "auto", "stock", "q8_0", "none.gguf", ["127.0.0.1:1"], True, 1]
    refused = {name for name in outrider.options()["model"]
               if refused_for_a_draft(name, values)}
    own = {"gpu_layers", "cache_type_k", "cache_type_v"}
    assert refused == set(OF_THE_TARGET_ALONE) - own
    with outrider.Outrider(TARGET, DRAFT, mtp="off", worker_timeout_s=5, exact="off", widest=4) as o:
        assert o.call("system.status")["draft"]["state"] == "ready"


def test_many_threads_get_the_texts_that_one_gets(o: outrider.Outrider) -> None:
    def text(seed: int) -> str:
        return o.generate(PROMPT, max_tokens=24, seed=seed).text
    one_by_one = [text(seed) for seed in range(12)]
    with concurrent.futures.ThreadPoolExecutor(12) as threads:
        assert list(threads.map(text, range(12))) == one_by_one
    assert len(set(one_by_one)) > 1


def test_closing_ends_what_other_threads_wait_for() -> None:
    o = outrider.Outrider(TARGET, seed=1)
    begun, outcome = threading.Event(), []
    def generate() -> None:
        try:
            for _ in o.stream(PROMPT, **ENDLESS):
                begun.set()
            outcome.append("ended")
        except outrider.Error as error:
            outcome.append(str(error))
    thread = threading.Thread(target=generate)
    thread.start()
    begun.wait()
    o.close()
    thread.join()
    assert outcome and "closed" in outcome[0]
    o.close()
    with pytest.raises(outrider.Error, match="closed"):
        o.generate(PROMPT)


def test_a_conversation_goes_on_and_a_failure_leaves_it_as_it_was(o: outrider.Outrider) -> None:
    chat = o.chat("Be brief.", max_tokens=6)
    answer = chat.send("Hello")
    assert answer.message is not None
    assert [m["role"] for m in chat.messages] == ["system", "user", "assistant"]
    assert chat.messages[2]["content"] == answer.message["content"]
    stream = chat.stream("And now?")
    assert "".join(piece.text for piece in stream) == stream.result.text
    assert len(chat.messages) == 5
    with pytest.raises(outrider.Error):
        chat.send("Again", top_p=7)
    for _ in chat.stream("Left", **ENDLESS):
        break
    assert len(chat.messages) == 5


def test_tokens_go_there_and_back(o: outrider.Outrider) -> None:
    tokens = o.tokenize("a time", add_special=False)
    assert o.detokenize(tokens).strip() == "a time"
    parts: list[Union[str, int]] = [PROMPT, *tokens]
    assert o.generate(parts, max_tokens=1).usage["prompt_tokens"] > len(tokens)


def test_progress_goes_to_a_callback_and_the_line_is_taken_away(
        capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[outrider.Loading] = []
    outrider.Outrider(TARGET, DRAFT, progress=seen.append).close()
    assert all(0 <= loading.fraction <= 1 for loading in seen)
    assert [(loading.role, loading.fraction) for loading in seen[-2:]] == [("target", 1.0),
                                                                          ("draft", 1.0)]
    assert capsys.readouterr() == ("", "")  # no line where stderr is no terminal
    out = io.StringIO()
    line = ProgressLine(out)
    line([outrider.Loading("target", "x", 0.42)])
    line([outrider.Loading("target", "x", 0.421)])
    line.clear()
    assert out.getvalue() == "\rloading target: 42 %\r                    \r"


class NotebookStream(io.StringIO):
    """As a notebook's kernel has it, by its module's name."""


@pytest.mark.parametrize("module, given, shown", [
    ("ipykernel.iostream", None, True), ("_io", None, False), ("_io", True, True),
    ("ipykernel.iostream", False, False)])
def test_two_models_that_load_share_the_line(monkeypatch: pytest.MonkeyPatch, module: str,
                                             given: Union[bool, None], shown: bool) -> None:
    monkeypatch.setattr(NotebookStream, "__module__", module)
    out = NotebookStream()
    monkeypatch.setattr("sys.stderr", out)
    reporter = Reporter(given)
    for fraction in (0.42, 0.43):
        reporter.report([outrider.Loading("target", "x", fraction),
                         outrider.Loading("draft", "y", 0.0)])
    assert out.getvalue().split("\r")[1:] == (["loading target: 42 %, draft: 0 %",
                                              "loading target: 43 %, draft: 0 %"] if shown else [])


def test_the_line_has_the_target_as_long_as_it_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    monkeypatch.setattr("sys.stderr", out)
    outrider.Outrider(TARGET, DRAFT, progress=True).close()
    texts = out.getvalue().split("\r")
    assert texts[-3].rstrip() == "loading target: 100 %, draft: 100 %"
    assert texts[-1] == ""  # and the line was taken away


def test_an_exception_in_the_callback_ends_the_load() -> None:
    def refuse(_: outrider.Loading) -> None:
        raise ZeroDivisionError
    with pytest.raises(ZeroDivisionError):
        outrider.Outrider(TARGET, progress=refuse)


def test_a_model_in_a_process_of_its_own_needs_no_command_on_the_path() -> None:
    program = (f"import outrider\no = outrider.Outrider({str(TARGET)!r}, isolate=True, threads=1)\n"
               "print(len(o.generate('a', max_tokens=4, ignore_eos=True).tokens))\no.close()\n")
    done = subprocess.run([sys.executable, "-c", program], check=False, text=True,
                          env={**os.environ, "PATH": "/no/such/folder"},
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300)
    assert (done.returncode, done.stdout) == (0, "4\n"), done.stderr


@pytest.mark.parametrize("ending", [
    "stream = o.stream('a', max_tokens=3000, ignore_eos=True); next(stream)",
    "import threading, time\n"
    "threading.Thread(target=o.generate, args=('a',), kwargs=dict(max_tokens=64)).start()",
    "o.close()",
    "raise SystemExit(0)",
])
def test_a_process_ends_in_any_state(ending: str) -> None:
    program = f"import outrider\no = outrider.Outrider({str(TARGET)!r}, seed=1)\n{ending}\n"
    done = subprocess.run([sys.executable, "-c", program], check=False, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
