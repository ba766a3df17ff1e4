"""What a handle has on one event loop."""

from __future__ import annotations

from functools import partial

from ...store import loops
from .bell import Bell
from .connection import Lanes
from .spares import Spares
from .target import Target
from .wake import Ear


class Here(loops.Place):
    def __init__(self, target: Target, everywhere: loops.Everywhere[Here]) -> None:
        super().__init__(everywhere)
        self.lanes = Lanes(target)
        self.bell = Bell(target, self.lanes)
        self.ear = Ear(target)
        self.spares = Spares(target)

    async def close(self) -> None:
        await self.ear.close()
        await self.bell.close()
        await self.spares.close()
        await self.lanes.close()


class Everywhere(loops.Everywhere[Here]):
    def __init__(self, target: Target) -> None:
        super().__init__(partial(Here, target))
