"""A completion that goes on: pieces as they come, then the result."""

from __future__ import annotations

import asyncio
import collections
import concurrent.futures
import threading
from types import TracebackType
from typing import Any, Callable, Optional

from ._library import WAIT_MS, Error, Instance, Reply
from ._result import Completion, Piece, PieceCutter
from ._threads import Keeper, Threads

OnEnd = Callable[[Completion], None]


class Run:
    """One completion in the library. One thread reads it at a time; any may fetch or cancel. It keeps
    its `owner`, which closes the instance when nobody has it any more. One that nobody has any more
    is cancelled."""

    ended = True  # until it begins
    _id: Optional[int] = None

    def __init__(self, owner: object, instance: Instance, params: dict[str, Any],
                 on_end: Optional[OnEnd] = None, keeper: Optional[Keeper] = None) -> None:
        self._owner = owner
        self._instance = instance
        self._cutter = PieceCutter()
        self._on_end = on_end
        self._lock = threading.RLock()  # of one fetch at a time
        self._started = Reply()  # has the id where this is interrupted
        self._failure: Optional[Error] = None
        self.pieces: collections.deque[Piece] = collections.deque()
        self.raw: Optional[dict[str, Any]] = None  # the result, once the library has handed it out
        self.result: Optional[Completion] = None  # of a text that was read to its end
        self.ended = False  # nothing more is handed out
        self._left = False  # before its end
        try:
            instance.ask("completion.start", params, self._started)
            self._id = instance.result(self._started)["id"]
            if keeper is not None:
                keeper.add(self)
        except BaseException:
            self.cancel()
            raise
        finally:
            self._started.free()

    def ready(self) -> bool:
        """Whether next() need not wait."""
        return bool(self.pieces) or self.raw is not None or self.ended

    def poll(self) -> None:
        """Waits a little for something new."""
        with self._lock:
            if not self.ready():
                self.fetch(WAIT_MS)

    def keep(self) -> bool:
        """Fetches what there is, unless somebody else does. False: there is nothing more to come."""
        if self._lock.acquire(blocking=False):
            try:
                self.fetch(0)
            except Error:  # its reader is told by a poll of his own
                return False
            finally:
                self._lock.release()
        return self.raw is None and not self.ended

    def fetch(self, wait_ms: int) -> None:
        """What is new, for which it waits so long. Raises Error."""
        with self._lock:
            if self.raw is not None or self.ended:
                return
            news = self._instance.call("completion.poll", id=self._id, wait_ms=wait_ms)
            self.pieces.extend(self._cutter.cut(news["updates"], news["finished"]))
            if news["finished"]:
                self.raw = news["result"]

    def next(self) -> Optional[Piece]:
        """The next piece that has come; None: no more. Raises Error where the completion failed.
        REQUIRES: ready()"""
        if self.pieces and not self._left:
            return self.pieces.popleft()
        if not self.ended and self.raw is not None:
            self._end(self.raw)
        if self._failure is not None:
            raise self._failure
        return None

    def _end(self, raw: dict[str, Any]) -> None:
        self.ended = True
        if raw.get("error"):
            self._failure = Error(raw["error"]["message"], None, raw["error"]["code"])
            return
        self.result = Completion.of(raw)
        if self._on_end is not None:
            self._on_end(self.result)

    def cancel(self) -> None:
        """Ends it, where it goes on; nobody fetches its result then, nor what has come."""
        if self.ended:
            return
        if self.raw is None:
            try:
                if self._id is None:
                    self._id = self._started.result()["id"]
                self._instance.call("completion.cancel", id=self._id)
            except Error:  # it has not begun or ended by itself, or everything has
                pass
        self._left = True
        self.ended = True  # at last: an interrupt before leaves it to __del__

    def __del__(self) -> None:
        self.cancel()


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
        while not run.ready():
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

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()


class AsyncStream:
    """The same for asyncio; a cancelled task cancels the completion. It begins with the first piece
    that is asked for."""

    def __init__(self, start: Callable[[], Run], threads: Threads) -> None:
        self._start = start
        self._threads = threads
        self._starting: Optional[concurrent.futures.Future[Run]] = None
        self._started: Optional[asyncio.Future[Run]] = None  # by it, for all tasks that wait
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
            self._run = await self._begin()
        run = self._run
        while not run.ready():
            try:
                polled = asyncio.wrap_future(self._threads.submit(run.poll))
                # The thread's poll ends by itself; only its waiting is shared with the task.
                polled.add_done_callback(_look_at)
                await asyncio.shield(polled)
            except BaseException:
                run.cancel()
                raise
        piece = run.next()
        if piece is None:
            raise StopAsyncIteration
        return piece

    async def _begin(self) -> Run:
        """In a thread, since reading a prompt takes a moment; once, however many tasks ask for the first
        piece. A task that is cancelled meanwhile does not leave a completion behind."""
        if self._starting is None or self._started is None:
            self._starting = self._threads.submit(self._start)
            self._started = asyncio.wrap_future(self._starting)
            self._started.add_done_callback(_look_at)  # it may fail when nobody waits any more
        starting, started = self._starting, self._started
        try:
            await asyncio.wait((started,))
        except asyncio.CancelledError:
            self._closed = True
            if not starting.cancel():  # it runs, perhaps for longer than the loop
                starting.add_done_callback(_cancel_started)
            raise
        if started.cancelled():  # by another task, before it began
            raise StopAsyncIteration
        if started.exception() is not None and self._started is started:
            self._starting = self._started = None  # who asks again begins again
        run = started.result()
        if self._closed:  # by another task meanwhile, which had nothing to cancel yet
            run.cancel()
            raise StopAsyncIteration
        return run

    async def aclose(self) -> None:
        """Cancels what goes on."""
        self._closed = True
        if self._run is not None:
            self._run.cancel()

    async def __aenter__(self) -> AsyncStream:
        return self

    async def __aexit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException],
                        trace: Optional[TracebackType]) -> None:
        await self.aclose()


def _result_of(run: Optional[Run]) -> Completion:
    if run is None or run.result is None:
        raise Error("there is no result: the completion has not come to its end")
    return run.result


def _look_at(done: asyncio.Future[Any]) -> None:
    if not done.cancelled():
        done.exception()  # known by now, or of no interest


def _cancel_started(starting: concurrent.futures.Future[Run]) -> None:
    if not starting.cancelled() and starting.exception() is None:
        starting.result().cancel()
