"""The module with asyncio."""

from __future__ import annotations

import asyncio
import gc
import threading
from typing import Any

import pytest

import outrider
from outrider._stream import Run
from outrider._threads import MOST_THREADS, Threads

from conftest import TARGET

PROMPT = "Once upon a time"
ENDLESS: dict[str, Any] = {"max_tokens": 3000, "ignore_eos": True}


async def idle(o: outrider.Outrider) -> int:
    """Waits for the completions that run; how many have finished."""
    while True:
        stats = o.stats()
        if stats["running"] == 0 and stats["queued"] == 0:
            finished: int = stats["finished"]
            return finished
        await asyncio.sleep(0)


def test_many_at_once_give_the_texts_of_one(o: outrider.Outrider) -> None:
    one_by_one = [o.generate(PROMPT, max_tokens=24, seed=seed).text for seed in range(12)]
    async def together() -> list[str]:
        wanted = (o.agenerate(PROMPT, max_tokens=24, seed=seed) for seed in range(12))
        return [completion.text for completion in await asyncio.gather(*wanted)]
    assert asyncio.run(together()) == one_by_one


def test_pieces_together_are_the_text(o: outrider.Outrider) -> None:
    async def read() -> tuple[str, str]:
        stream = o.astream(PROMPT, max_tokens=24)
        pieces = [piece async for piece in stream]
        return "".join(piece.text for piece in pieces), stream.result.text
    pieces, text = asyncio.run(read())
    assert pieces == text == o.generate(PROMPT, max_tokens=24).text


def test_tasks_that_ask_for_the_first_piece_at_once_share_one_completion(o: outrider.Outrider) -> None:
    async def read() -> tuple[str, str, int]:
        before = await idle(o)
        stream = o.astream(PROMPT, max_tokens=24)
        texts: list[str] = []
        async def take() -> None:
            async for piece in stream:
                texts.append(piece.text)
        await asyncio.gather(take(), take())
        return "".join(texts), stream.result.text, await idle(o) - before
    pieces, text, finished = asyncio.run(read())
    assert pieces == text
    assert finished == 1


def test_a_cancelled_task_cancels_its_completion(o: outrider.Outrider) -> None:
    async def cancel_when_it_runs() -> int:
        before = await idle(o)
        task = asyncio.create_task(o.agenerate(PROMPT, **ENDLESS))
        while o.stats()["running"] == 0:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await idle(o) - before
    tokens = o.stats()["generated_tokens"]
    assert asyncio.run(cancel_when_it_runs()) == 1
    assert o.stats()["generated_tokens"] - tokens < 3000


def test_a_stream_that_is_closed_while_it_starts_leaves_nothing_behind(o: outrider.Outrider) -> None:
    async def close_at_once() -> int:
        before = await idle(o)
        stream = o.astream(PROMPT, **ENDLESS)
        first = asyncio.create_task(stream.__anext__())
        await asyncio.sleep(0)  # it starts, in a thread
        await stream.aclose()
        with pytest.raises(StopAsyncIteration):
            await first
        return await idle(o) - before
    tokens = o.stats()["generated_tokens"]
    assert asyncio.run(close_at_once()) <= 1
    assert o.stats()["generated_tokens"] - tokens < 3000


def test_a_task_that_is_cancelled_at_once_leaves_nothing_behind(o: outrider.Outrider) -> None:
    async def cancel_at_once() -> None:
        task = asyncio.create_task(o.agenerate(PROMPT, **ENDLESS))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    tokens = o.stats()["generated_tokens"]
    asyncio.run(cancel_at_once())
    asyncio.run(idle(o))
    assert o.stats()["generated_tokens"] - tokens < 3000


def test_a_task_that_is_cancelled_ends_the_stream_of_those_that_wait_with_it() -> None:
    gate = threading.Event()
    def start() -> Run:
        gate.wait()
        raise outrider.Error("it is gone")
    async def read() -> None:
        threads = Threads()
        for _ in range(MOST_THREADS):  # so that the start waits for a thread
            threads.submit(gate.wait)
        stream = outrider.AsyncStream(start, threads)
        first, second = (asyncio.create_task(stream.__anext__()) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        with pytest.raises(StopAsyncIteration):
            await second
        threads.close()
    try:
        asyncio.run(read())
    finally:
        gate.set()


def test_a_start_that_fails_after_its_task_was_cancelled_is_not_reported() -> None:
    begun, gate = threading.Event(), threading.Event()
    reported: list[Any] = []
    def start() -> Run:
        begun.set()
        gate.wait()
        raise outrider.Error("top_p is 7")
    async def cancel() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
        threads = Threads()
        task = asyncio.create_task(outrider.AsyncStream(start, threads).__anext__())
        while not begun.is_set():
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        gate.set()
        threads._executor.shutdown(wait=True)  # it has failed by then
        del task
        for _ in range(3):  # the loop hears of it
            await asyncio.sleep(0)
        gc.collect()
        await asyncio.sleep(0)
    asyncio.run(cancel())
    assert reported == []


def test_a_stream_that_is_left_early_is_cancelled(o: outrider.Outrider) -> None:
    async def leave() -> int:
        before = await idle(o)
        async for _ in o.astream(PROMPT, **ENDLESS):
            break
        async with o.astream(PROMPT, **ENDLESS) as stream:
            async for _ in stream:
                break
        assert [piece async for piece in stream] == []
        return await idle(o) - before
    assert asyncio.run(leave()) == 2


def test_errors_name_their_field(o: outrider.Outrider) -> None:
    with pytest.raises(outrider.Error) as caught:
        asyncio.run(o.agenerate(PROMPT, top_p=7))
    assert caught.value.field == "top_p"


def test_what_is_closed_says_so() -> None:
    with outrider.Outrider(TARGET) as o:
        asyncio.run(o.agenerate(PROMPT, max_tokens=2))
    with pytest.raises(outrider.Error, match="closed"):
        asyncio.run(o.agenerate(PROMPT))


def test_a_conversation(o: outrider.Outrider) -> None:
    async def talk() -> list[str]:
        chat = o.chat(max_tokens=4)
        await chat.asend("Hello")
        async for _ in chat.astream("Again"):
            pass
        return [message["role"] for message in chat.messages]
    assert asyncio.run(talk()) == ["user", "assistant"] * 2
