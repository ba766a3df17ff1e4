"""Calls of the functions of steps, on a loop."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from ..client.running import is_async
from .trying import Tries, TryAgain, Watch, refuse_late, within

if TYPE_CHECKING:
    from .threads import Threads


class StepCall(NamedTuple):
    """A call of a step's function."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    limit: float | None
    """Seconds."""
    threads: Threads | None
    """Those of the worker; None for a job that is processed by hand."""
    watch: Watch
    what: str
    """As errors call it."""

    async def run(self) -> Any:
        if is_async(self.function):
            return await within(self.limit, self.function(*self.args, **self.kwargs), self.watch, self.what)
        # Nothing can stop a thread: a timeout is noticed when it has ended, so that no second one runs beside it.
        began = time.monotonic()
        watching = None if self.limit is None else self.watch(self.limit, self.what)
        try:
            result = await self._in_thread()
        finally:
            if watching is not None:
                watching.cancel()
        if inspect.isawaitable(result):
            return await within(self.limit, result, self.watch, self.what)
        refuse_late(began, self.limit, self.what)
        return result

    async def _in_thread(self) -> Any:
        if self.threads is None:
            return await asyncio.to_thread(self.function, *self.args, **self.kwargs)
        await self.threads.engage()
        return await self.threads.run(lambda _: self.function(*self.args, **self.kwargs), None)

    async def tried(self, tries: Tries, try_again: TryAgain) -> Any:
        """Its result. After an error the function is called again, if tries are left."""
        failed = 0
        while True:
            try:
                return await self.run()
            except Exception as error:
                failed += 1
                if not await try_again(self.what, error, tries.pause_after(failed)):
                    raise
