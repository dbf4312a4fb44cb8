"""Readers that pause, and answers that are left when the library has said all of them."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any, Union

import pytest

import outrider
from outrider._threads import Keeper

from conftest import TARGET

PROMPT = "Once upon a time"


def wait_until_idle(o: outrider.Outrider) -> None:
    """Waits for the completions that run."""
    while any(o.stats()[state] for state in ("running", "queued")):
        pass


def wait_until_dropped(o: outrider.Outrider) -> None:
    """Waits until the library has dropped a result, and so all that were finished before it."""
    last = o.call("completion.start", prompt=PROMPT, max_tokens=1)["id"]
    wait_until_idle(o)
    with pytest.raises(outrider.Error) as caught:
        while True:
            o.call("completion.cancel", id=last)  # no error while it is known
    assert caught.value.code == "not_found"


def fetch_all(stream: Union[outrider.Stream, outrider.AsyncStream]) -> None:
    """As the keeper does while a reader pauses, until the library has said everything."""
    run = stream._run
    while run is not None and run.raw is None:
        run.keep()


def paused(monkeypatch: pytest.MonkeyPatch) -> outrider.Outrider:
    """One that drops a result after 2 seconds, and looks 50 times before."""
    monkeypatch.setattr("outrider._threads.LONGEST_S", 0.04)
    return outrider.Outrider(TARGET, seed=1, retention_ms=2000)


def test_a_text_outlasts_a_pause_of_its_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    with paused(monkeypatch) as o:
        stream = o.stream(PROMPT, max_tokens=24)
        unread = o.stream(PROMPT, max_tokens=24)
        first = next(stream)
        wait_until_dropped(o)
        assert first.text + "".join(piece.text for piece in stream) == stream.result.text
        assert "".join(piece.text for piece in unread) == stream.result.text
        assert len(unread.result.tokens) == 24


def test_a_text_outlasts_a_pause_of_its_task(monkeypatch: pytest.MonkeyPatch) -> None:
    async def read(o: outrider.Outrider) -> None:
        stream = o.astream(PROMPT, max_tokens=24)
        pieces = [await stream.__anext__()]
        wait_until_dropped(o)
        pieces += [piece async for piece in stream]
        assert "".join(piece.text for piece in pieces) == stream.result.text
    with paused(monkeypatch) as o:
        asyncio.run(read(o))


def test_a_keeper_looks_four_times_before_a_text_is_dropped() -> None:
    assert Keeper(None).interval_s == 10
    assert Keeper(4000).interval_s == 1
    assert Keeper(0).interval_s == Keeper("?").interval_s == 10


def test_a_keeper_holds_on_to_nothing(o: outrider.Outrider) -> None:
    class Run:
        looks = 0
        def keep(self) -> bool:
            Run.looks += 1
            return True
    keeper = Keeper(4)
    run = Run()
    known = weakref.ref(run)
    keeper.add(run)
    while Run.looks < 3:
        pass
    del run
    while known() is not None:
        gc.collect()
    keeper.close()
    keeper.close()
    keeper._thread.join()


def test_a_dropped_instance_leaves_no_thread() -> None:
    o = outrider.Outrider(TARGET)
    thread = o._keeper._thread
    assert thread.is_alive()
    del o
    gc.collect()
    thread.join()


def test_an_answer_that_is_left_behind_its_last_word_is_not_remembered(o: outrider.Outrider) -> None:
    chat = o.chat(max_tokens=24)
    stream = chat.stream("Hello")
    next(stream)
    fetch_all(stream)
    stream.close()
    assert chat.messages == []
    with pytest.raises(outrider.Error, match="not come to its end"):
        stream.result
    assert list(stream) == []
    answer = chat.send("Hello")
    assert [message["content"] for message in chat.messages] == ["Hello", answer.text]


def test_a_task_that_is_left_behind_its_last_word_remembers_nothing(o: outrider.Outrider) -> None:
    async def leave() -> list[dict[str, Any]]:
        chat = o.chat(max_tokens=24)
        async with chat.astream("Hello") as stream:
            await stream.__anext__()
            fetch_all(stream)
        with pytest.raises(outrider.Error, match="not come to its end"):
            stream.result
        return chat.messages
    assert asyncio.run(leave()) == []
