"""One piece of work for all who need it at the same time, as the making of a connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from ..errors import StoreClosed

T = TypeVar("T")


class Shared(Generic[T]):
    """Goes on when one of those who wait is cancelled, and begins anew for who comes when it has ended."""

    def __init__(self, url: str, work: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self._url = url
        self._work = work
        self._task: asyncio.Task[T] | None = None
        self._is_closed = False

    async def result(self) -> T:
        """Raises what the work raises, and StoreClosed after `close`."""
        task = self.begin()
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            caller = asyncio.current_task()
            if task.cancelled() and caller is not None and not caller.cancelling():
                # Nobody has cancelled the caller: for it this is an error like any other.
                raise self._closed() from None
            raise

    def begin(self) -> asyncio.Task[T]:
        """For who will need it soon: it is under way now, and what it raises is told to those who wait for it only."""
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
