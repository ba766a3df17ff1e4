"""The thread pool for `def` handlers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextvars import Context, copy_context
from queue import SimpleQueue
from typing import Any, TypeAlias

from ..store import forks
from .service import end_forked_child
from .shortage import Shortage

_Ended: TypeAlias = "asyncio.Future[tuple[Any, BaseException | None]]"
_Work: TypeAlias = tuple[_Ended, Context, Callable[[Any], Any], Any]


class Threads:
    """A pool that grows to as many threads as handlers run at once; a hung thread is replaced, not waited for.

    They are daemon threads: the standard library's executor would wait at exit for a handler that hangs.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._work: SimpleQueue[_Work | None] = SimpleQueue()
        self._idle = 0
        self._started = 0
        self._shortage = Shortage()
        self._forks = forks.count

    async def engage(self) -> None:
        """Reserves a thread, idle or new, for the `run` that must follow at once.

        If the system starts no more threads, it waits for one to become free.
        """
        while not self._idle:
            try:
                self._start(asyncio.get_running_loop())
            except RuntimeError as error:
                await self._shortage.wait(error, f"one of {self._started} threads")
            else:
                self._shortage.is_over()
                return
        self._idle -= 1

    async def run(self, function: Callable[[Any], Any], argument: Any) -> Any:
        answer: _Ended = asyncio.get_running_loop().create_future()
        self._work.put((answer, copy_context(), function, argument))
        result, error = await answer
        if error is not None:
            raise error
        return result

    def close(self) -> None:
        """Ends idle threads; busy ones end after their handler."""
        for _ in range(self._started):
            self._work.put(None)

    def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        name = f"{self._name}-{self._started + 1}"
        threading.Thread(target=self._serve, args=(loop,), name=name, daemon=True).start()
        self._started += 1

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        while (work := self._work.get()) is not None:
            answer, context, function, argument = work
            result, error = None, None
            try:
                result = context.run(function, argument)
            except BaseException as raised:  # noqa: BLE001 - SystemExit too fails the job, not the thread
                error = raised
            if forks.count != self._forks:
                end_forked_child()
            try:
                loop.call_soon_threadsafe(self._deliver, answer, result, error)
            except RuntimeError:
                return  # The loop is closed: the worker ended without waiting for this handler.
            del work, answer, context, function, argument, result, error

    def _deliver(self, answer: _Ended, result: Any, error: BaseException | None) -> None:
        self._idle += 1
        self._shortage.came_free()
        if not answer.done():
            # Not by set_exception: a future refuses StopIteration, and GeneratorExit would close the coroutine.
            answer.set_result((result, error))
