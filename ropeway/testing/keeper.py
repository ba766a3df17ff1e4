"""A worker's services on the loop of a fake clock."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from contextvars import copy_context
from typing import TYPE_CHECKING

from ..worker.keeper import Keeper, Leave, Make
from ..worker.loopwatch import LoopWatch
from ..worker.service import run_all
from .governor import AT_SERVICE

if TYPE_CHECKING:
    from .clock import FakeClock


class LoopKeeper(Keeper):
    """Runs the services beside the handlers: a thread of its own would live by another time.

    A handler that blocks the loop blocks them too, but while it does so no time passes.
    """

    def __init__(self, clock: FakeClock, make: Make, leave: Leave) -> None:
        super().__init__(make, leave)
        self._clock = clock
        self._serving: asyncio.Task[None] | None = None
        self._began = False
        self._governed = ExitStack()

    async def start(self) -> asyncio.Future[None]:
        self._governed.enter_context(self._clock.governing())
        self._began = True
        services = [service for service in await self._make() if not isinstance(service, LoopWatch)]
        context = copy_context()
        context.run(AT_SERVICE.set, True)
        self._serving = asyncio.create_task(run_all(services), name="ropeway-keeper", context=context)
        return self._serving

    async def stop(self) -> None:
        try:
            if self._serving is not None:
                self._serving.cancel()
                await asyncio.wait([self._serving])
            if self._began:
                await self._leave()
        finally:
            self._governed.close()
