"""Single flight: concurrent callers share one task, such as opening a connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from ..errors import StoreClosed

T = TypeVar("T")


class SingleFlight(Generic[T]):
    """Runs `work` once for all concurrent callers. A cancelled caller does not stop it; a later one runs it again."""

    def __init__(self, url: str, work: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self._url = url
        self._work = work
        self._task: asyncio.Task[T] | None = None
        self._is_closed = False

    async def result(self) -> T:
        """The result of the running or a new task. Raises `StoreClosed` after `close`."""
        task = self.begin()
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            caller = asyncio.current_task()
            if task.cancelled() and caller is not None and not caller.cancelling():
                # The caller itself was not cancelled: for it this is an ordinary error.
                raise self._closed() from None
            raise

    def begin(self) -> asyncio.Task[T]:
        """Starts the task without waiting, unless it runs. Its error is raised only in callers of `result`."""
        if self._is_closed:
            raise self._closed()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work())
            self._task.add_done_callback(lambda task: task.cancelled() or task.exception())
        return self._task

    async def close(self) -> None:
        self._is_closed = True
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task])

    def _closed(self) -> StoreClosed:
        return StoreClosed(self._url, "this handle was closed: make another with connect()")
