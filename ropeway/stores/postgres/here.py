"""What a handle has on one event loop."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial

from ...errors import StoreError
from ...store import loops
from .bell import Bell
from .connection import Lanes
from .spares import Spares
from .target import Target
from .wake import Ear


class Here(loops.LoopResources):
    def __init__(self, target: Target, everywhere: loops.PerLoop[Here]) -> None:
        super().__init__(everywhere)
        self.lanes = Lanes(target)
        self.bell = Bell(target, self.lanes)
        self.ear = Ear(target)
        self.spares = Spares(target)
        self._readying: asyncio.Task[None] | None = None

    def make_ready(self) -> None:
        """For work that is soon to come; nobody has to wait for it."""
        if self._readying is None:
            self._readying = self.loop.create_task(self._make_ready())

    async def _make_ready(self) -> None:
        if not self.closes_with_loop:
            await self.close_with_loop()
        with suppress(StoreError):
            await self.lanes.make_ready()

    async def close(self) -> None:
        if self._readying is not None and not self._readying.done():
            self._readying.cancel()
            await asyncio.wait([self._readying])
        await self.ear.close()
        try:
            await self.bell.close()
        finally:
            # Also if the caller does not wait any longer: the loop's end would close it again.
            await self.spares.close()
            await self.lanes.close()


class Everywhere(loops.PerLoop[Here]):
    def __init__(self, target: Target) -> None:
        super().__init__(partial(Here, target))
