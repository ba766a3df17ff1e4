"""A worker's maintenance services on the application's loop, for a fake clock."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from contextvars import copy_context
from typing import TYPE_CHECKING

from ..worker.maintenance.loop_watch import LoopWatch
from ..worker.maintenance.thread import CleanUp, MaintenanceThread, MakeServices
from .fake_loop import IN_MAINTENANCE

if TYPE_CHECKING:
    from .clock import FakeClock


class LoopMaintenance(MaintenanceThread):
    """Runs the services on the handlers' loop, because a separate thread would not use the fake clock.

    A handler that blocks the loop blocks them too, but no time passes meanwhile.
    """

    def __init__(self, clock: FakeClock, make: MakeServices, clean_up: CleanUp) -> None:
        super().__init__(make, clean_up)
        self._clock = clock
        self._serving: asyncio.Task[None] | None = None
        self._began = False
        self._controlled = ExitStack()
        self._context = copy_context()

    async def start(self) -> asyncio.Future[None]:
        self._controlled.enter_context(self._clock.controlling_loop())
        self._began = True
        self._context.run(IN_MAINTENANCE.set, True)
        await self.add_services(self._make)
        self._serving = asyncio.create_task(self._services.run(), name="ropeway-maintenance", context=self._context)
        return self._serving

    async def add_services(self, make: MakeServices) -> None:
        services = [service for service in await make() if not isinstance(service, LoopWatch)]
        self._context.run(self._services.add, services)

    async def stop(self) -> None:
        try:
            if self._serving is not None:
                self._serving.cancel()
                await asyncio.wait([self._serving])
            if self._began:
                await self._clean_up()
        finally:
            self._controlled.close()
