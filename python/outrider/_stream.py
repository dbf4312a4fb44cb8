"""A completion that goes on: pieces as they come, then the result."""

from __future__ import annotations

import asyncio
import collections
import concurrent.futures
from types import TracebackType
from typing import Any, Callable, Optional

from ._library import Error, Instance
from ._result import Completion, Piece, PieceCutter

# A wait in the library cannot be interrupted, by Ctrl-C for one.
WAIT_MS = 200

OnEnd = Callable[[Completion], None]


class Run:
    """One completion in the library. Of one thread at a time. It keeps its `owner`, which closes the
    instance when nobody has it any more."""

    def __init__(self, owner: object, instance: Instance, params: dict[str, Any],
                 on_end: Optional[OnEnd]) -> None:
        self._owner = owner
        self._instance = instance
        self._cutter = PieceCutter()
        self._on_end = on_end
        self._id: int = instance.call("completion.start", **params)["id"]
        self.pieces: collections.deque[Piece] = collections.deque()
        self.ended = False
        self.result: Optional[Completion] = None
        self._failure: Optional[Error] = None

    def poll(self) -> None:
        """Waits a little for something new."""
        try:
            news = self._instance.call("completion.poll", id=self._id, wait_ms=WAIT_MS)
        except Error:
            self.ended = True
            raise
        self.pieces.extend(self._cutter.cut(news["updates"], news["finished"]))
        if news["finished"]:
            self._end(news["result"])

    def _end(self, raw: dict[str, Any]) -> None:
        self.ended = True
        if raw.get("error"):
            self._failure = Error(raw["error"]["message"], None, raw["error"]["code"])
            return
        self.result = Completion.of(raw)
        if self._on_end is not None:
            self._on_end(self.result)

    def next(self) -> Optional[Piece]:
        """The next piece that has come; None: no more. Raises Error where the completion failed.
        REQUIRES: there are pieces, or it has ended"""
        if self.pieces:
            return self.pieces.popleft()
        if self._failure is not None:
            raise self._failure
        return None

    def cancel(self) -> None:
        """Ends it, where it goes on; nobody fetches its result then."""
        if self.ended:
            return
        self.ended = True
        try:
            self._instance.call("completion.cancel", id=self._id)
        except Error:  # it has ended by itself, or everything has
            pass


class Stream:
    """The pieces of a text, as they come. Leaving it early (break, an exception, close()) cancels the
    completion. `result` is there behind the last piece."""

    def __init__(self, run: Run) -> None:
        self._run = run

    @property
    def result(self) -> Completion:
        """The whole completion. Raises Error before the end, or when it was left early."""
        return _result_of(self._run)

    def __iter__(self) -> Stream:
        return self

    def __next__(self) -> Piece:
        run = self._run
        while not run.pieces and not run.ended:
            try:
                run.poll()
            except BaseException:  # KeyboardInterrupt too
                run.cancel()
                raise
        piece = run.next()
        if piece is None:
            raise StopIteration
        return piece

    def close(self) -> None:
        """Cancels what goes on."""
        self._run.cancel()
        self._run.pieces.clear()

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

    def __del__(self) -> None:
        self._run.cancel()


class AsyncStream:
    """The same for asyncio; a cancelled task cancels the completion. It begins with the first piece
    that is asked for."""

    def __init__(self, start: Callable[[], Run], executor: concurrent.futures.Executor) -> None:
        self._start = start
        self._executor = executor
        self._run: Optional[Run] = None
        self._closed = False

    @property
    def result(self) -> Completion:
        """As Stream's."""
        return _result_of(self._run)

    def __aiter__(self) -> AsyncStream:
        return self

    async def __anext__(self) -> Piece:
        if self._closed:
            raise StopAsyncIteration
        if self._run is None:
            self._run = await self._started()
        run = self._run
        while not run.pieces and not run.ended:
            # The thread's poll ends by itself; only its waiting is shared with the task.
            polled = asyncio.get_running_loop().run_in_executor(self._executor, run.poll)
            try:
                await asyncio.shield(polled)
            except BaseException:
                polled.add_done_callback(_look_at)
                run.cancel()
                raise
        piece = run.next()
        if piece is None:
            raise StopAsyncIteration
        return piece

    async def _started(self) -> Run:
        """In a thread, since reading a prompt takes a moment. A task that is cancelled meanwhile does
        not leave a completion behind."""
        starting = self._executor.submit(self._start)
        try:
            return await asyncio.shield(asyncio.wrap_future(starting))
        except asyncio.CancelledError:
            self._closed = True
            if not starting.cancel():  # it runs, perhaps for longer than the loop
                starting.add_done_callback(_cancel_started)
            raise

    async def aclose(self) -> None:
        """Cancels what goes on."""
        self._closed = True
        if self._run is not None:
            self._run.cancel()
            self._run.pieces.clear()

    async def __aenter__(self) -> AsyncStream:
        return self

    async def __aexit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException],
                        trace: Optional[TracebackType]) -> None:
        await self.aclose()

    def __del__(self) -> None:
        if self._run is not None:
            self._run.cancel()


def _result_of(run: Optional[Run]) -> Completion:
    if run is None or run.result is None:
        raise Error("there is no result: the completion has not come to its end")
    return run.result


def _look_at(polled: asyncio.Future[None]) -> None:
    if not polled.cancelled():
        polled.exception()  # known by now, or of no interest


def _cancel_started(starting: concurrent.futures.Future[Run]) -> None:
    if not starting.cancelled() and starting.exception() is None:
        starting.result().cancel()
