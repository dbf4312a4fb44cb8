"""The module with asyncio."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import outrider

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
