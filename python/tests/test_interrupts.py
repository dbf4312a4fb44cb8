"""Ctrl-C, signals and close(), at every moment."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import subprocess
import sys
import threading
from types import FrameType
from typing import Any, Callable, Iterator

import pytest

import outrider
from outrider._library import Instance, library

from conftest import TARGET

PROMPT = "Once upon a time"
ENDLESS: dict[str, Any] = {"max_tokens": 3000, "ignore_eos": True}
PACKAGE = os.path.dirname(outrider.__file__)


def interrupted(work: Callable[[], object], at: int) -> bool:
    """Does `work` with a KeyboardInterrupt before instruction `at` of the module's code. False: there
    are no so many."""
    left = at

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            left -= 1
            if left == -1:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with contextlib.suppress(KeyboardInterrupt):
            work()
    finally:
        sys.settrace(before)
    return left < 0


def everywhere(work: Callable[[], object]) -> Iterator[int]:
    """Does `work` again and again, interrupted an instruction later each time."""
    at = 0
    while interrupted(work, at):
        yield at
        at += 1
    assert at > 10  # or nothing was interrupted


def wait_until_idle(o: outrider.Outrider) -> None:
    """Waits for the completions that run."""
    while any(o.stats()[state] for state in ("running", "queued")):
        pass


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="threads are counted there")
def test_an_instance_whose_making_is_interrupted_is_destroyed() -> None:
    def threads() -> int:
        return len(os.listdir("/proc/self/task"))

    # The file is not there, which the load finds out on a thread of the instance.
    config = {"model": {"path": "/nonexistent.gguf"}}
    Instance(config).close()
    before = threads()
    for _ in everywhere(lambda: Instance(config).close()):
        gc.collect()
        assert threads() <= before  # those of earlier tests may end meanwhile


def test_close_returns_when_the_models_are_freed_whoever_frees_them(
        monkeypatch: pytest.MonkeyPatch) -> None:
    real = library()
    entered, may_end = threading.Event(), threading.Event()

    class Slow:
        def __getattr__(self, name: str) -> Any:
            return getattr(real, name)

        def outrider_destroy(self, address: int) -> None:
            entered.set()
            may_end.wait()
            real.outrider_destroy(address)

    instance = Instance({})
    monkeypatch.setattr("outrider._library.library", Slow)
    closers = [threading.Thread(target=instance.close) for _ in range(2)]
    for closer in closers:
        closer.start()
        entered.wait()
    closers[1].join(0.05)
    assert closers[1].is_alive()
    may_end.set()
    for closer in closers:
        closer.join()


def test_an_interrupted_call_does_not_hold_up_close() -> None:
    o = outrider.Outrider(TARGET)
    for _ in everywhere(lambda: o.tokenize("Once")):
        pass
    o.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # one in a __del__
def test_an_interrupted_start_leaves_no_completion_behind(o: outrider.Outrider) -> None:
    wait_until_idle(o)
    for _ in everywhere(lambda: o.stream(PROMPT, **ENDLESS).close()):
        tokens = o.stats()["generated_tokens"]
        wait_until_idle(o)
        assert o.stats()["generated_tokens"] - tokens < 3000


def test_an_interrupted_close_is_made_up_for_by_the_next() -> None:
    instance = Instance({})
    for _ in everywhere(lambda: instance.close()):
        instance.close()
        assert instance._owned == []
        instance = Instance({})
    instance.close()


def test_close_returns_where_references_are_not_counted_at_once(
        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("outrider._library.COUNTED_AT_ONCE", False)
    gc.disable()  # only close() collects
    try:
        instance = Instance({})
        cycle: list[Any] = [instance._handle]
        cycle.append(cycle)
        del cycle
        instance.close()
        assert instance._gone and instance._owned == []
    finally:
        gc.enable()
    monkeypatch.setattr("outrider._library.MOST_LOOKS", 3)
    instance = Instance({})
    held = instance._handle  # as one that no collection finds
    instance.close()
    assert held is not None and not instance._gone and instance._owned == []


def test_a_handler_of_a_signal_may_close() -> None:
    program = f"""
import os, outrider, signal, threading
o = outrider.Outrider({str(TARGET)!r}, seed=1)
signal.signal(signal.SIGUSR1, lambda *_: o.close())
def close_when_it_runs():
    while o.stats()["running"] == 0: pass
    os.kill(os.getpid(), signal.SIGUSR1)
threading.Thread(target=close_when_it_runs).start()
try:
    while True: o.call("completion.run", prompt="a", max_tokens=3000, ignore_eos=True)
except outrider.Error as error:
    print(error.code)
"""
    done = subprocess.run([sys.executable, "-c", program], check=False, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=200)
    assert (done.returncode, done.stdout, done.stderr) == (0, "cancelled\n", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_a_forked_process_may_end() -> None:
    program = f"""
import os, outrider, sys, threading
o = outrider.Outrider({str(TARGET)!r})
def wait(): o.call("completion.run", prompt="a", max_tokens=3000, ignore_eos=True)
threading.Thread(target=wait).start()
while o.stats()["running"] == 0: pass
child = os.fork()
if child == 0:
    try: outrider.Outrider({str(TARGET)!r})
    except outrider.Error as error: sys.exit(0 if "fork before" in str(error) else 2)
    sys.exit(1)
print(os.waitpid(child, 0)[1])
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=False, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=200)
    assert (done.returncode, done.stdout, done.stderr) == (0, "0\n", "")


@pytest.mark.parametrize("waiting", [
    lambda o, queued: o.call("completion.run", prompt=PROMPT, **ENDLESS),
    lambda o, queued: o.call("completion.poll", id=queued, wait_ms=3_600_000),
])
def test_closing_ends_a_call_that_waits(waiting: Callable[[outrider.Outrider, int], object]) -> None:
    o = outrider.Outrider(TARGET, slots=1, seed=1)
    running = o.stream(PROMPT, **ENDLESS)
    next(running)
    queued = o.call("completion.start", prompt=PROMPT, **ENDLESS)["id"]
    outcome: list[Any] = []
    begun = threading.Event()
    def wait() -> None:
        begun.set()
        try:
            outcome.append(waiting(o, queued))
        except outrider.Error as error:
            outcome.append(error.code)
    thread = threading.Thread(target=wait)
    thread.start()
    begun.wait()
    o.close()
    thread.join()
    assert outcome == ["cancelled"]


def test_an_interrupted_run_is_cancelled(o: outrider.Outrider,
                                         monkeypatch: pytest.MonkeyPatch) -> None:
    wait_until_idle(o)
    tokens = o.stats()["generated_tokens"]
    def fetch(*_: object) -> None:
        raise KeyboardInterrupt
    with monkeypatch.context() as patch:
        patch.setattr("outrider._stream.Run.fetch", fetch)
        with pytest.raises(KeyboardInterrupt):
            o.call("completion.run", prompt=PROMPT, **ENDLESS)
    wait_until_idle(o)
    assert o.stats()["generated_tokens"] - tokens < 3000


def test_a_run_and_long_waits_give_what_the_library_gives(o: outrider.Outrider) -> None:
    ran = o.call("completion.run", prompt=PROMPT, max_tokens=24, seed=1)
    assert ran["text"] == o.generate(PROMPT, max_tokens=24).text
    started = o.call("completion.start", prompt=PROMPT, max_tokens=24, seed=1)["id"]
    text, finished = "", False
    while not finished:
        news = o.call("completion.poll", id=started, wait_ms=3_600_000)
        text += "".join(update["text"] for update in news["updates"])
        finished = news["finished"]
    assert text == ran["text"]
    assert o.call("system.status", wait_ms=3_600_000)["target"]["state"] == "ready"
    with pytest.raises(outrider.Error) as caught:
        o.call("system.status", wait_ms=3_600_001)
    assert caught.value.field == "wait_ms"


def test_closing_while_tasks_wait_is_an_error_of_ours() -> None:
    async def close_meanwhile() -> None:
        o = outrider.Outrider(TARGET, seed=1)
        tasks = [asyncio.create_task(o.agenerate(PROMPT, **ENDLESS)) for _ in range(6)]
        while o.stats()["running"] == 0:
            await asyncio.sleep(0)
        o.close()
        for task in tasks:
            with pytest.raises(outrider.Error) as caught:
                await task
            assert caught.value.code == "cancelled"
    asyncio.run(close_meanwhile())
