"""Threads for `def` handlers."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context, copy_context
from queue import SimpleQueue
from typing import Any, Final, TypeAlias

from .service import end_if_forked, log

TRY_EVERY: Final = 1.0
"""Seconds between two tries to start a thread where the system starts no more."""

_Ended: TypeAlias = "asyncio.Future[tuple[Any, BaseException | None]]"
_Work: TypeAlias = tuple[_Ended, Context, Callable[[Any], Any], Any]


class Threads:
    """As many threads as handlers run at once; one that never returns is replaced, not waited for.

    They are daemons: the standard library's executor would wait at exit for a handler that hangs.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._work: SimpleQueue[_Work | None] = SimpleQueue()
        self._idle = 0
        self._started = 0
        self._is_short = False
        self._came_free = asyncio.Event()
        self._pid = os.getpid()

    async def engage(self) -> None:
        """Returns when a thread is there for the next `run`, which must follow at once: an idle one, or a new one.

        Where the system starts no more of them, it is the first that comes free: that is no fault of the job's.
        """
        while not self._idle:
            if self._start(asyncio.get_running_loop()):
                return
            self._came_free.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(TRY_EVERY):
                    await self._came_free.wait()
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

    def _start(self, loop: asyncio.AbstractEventLoop) -> bool:
        name = f"{self._name}-{self._started + 1}"
        try:
            threading.Thread(target=self._serve, args=(loop,), name=name, daemon=True).start()
        except RuntimeError as shortage:
            if not self._is_short:
                log.warning("%s: jobs wait for one of its %d threads to come free", shortage, self._started)
            self._is_short = True
            return False
        self._started += 1
        self._is_short = False
        return True

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        while (work := self._work.get()) is not None:
            answer, context, function, argument = work
            result, error = None, None
            try:
                result = context.run(function, argument)
            except BaseException as raised:  # noqa: BLE001 - SystemExit too fails the job, not the thread
                error = raised
            end_if_forked(self._pid)
            try:
                loop.call_soon_threadsafe(self._deliver, answer, result, error)
            except RuntimeError:
                return  # The loop is closed: the worker has gone without this handler.
            del work, answer, context, function, argument, result, error

    def _deliver(self, answer: _Ended, result: Any, error: BaseException | None) -> None:
        self._idle += 1
        self._came_free.set()
        if not answer.done():
            # Not as its exception: a future refuses StopIteration, and GeneratorExit would close the coroutine.
            answer.set_result((result, error))
