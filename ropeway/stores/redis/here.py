"""What a handle has on one event loop, and on threads that have none."""

from __future__ import annotations

from functools import partial

from ...store import loops
from .blocking import BlockingLinks
from .reaching import reach
from .target import Target
from .wake import Ear


class Here(loops.Place):
    def __init__(self, target: Target, everywhere: loops.Everywhere[Here]) -> None:
        super().__init__(everywhere)
        self.commands, opens = reach(target)
        self.ear = Ear(opens)

    async def close(self) -> None:
        await self.ear.close()
        await self.commands.close()


class Everywhere(loops.Everywhere[Here]):
    def __init__(self, target: Target) -> None:
        super().__init__(partial(Here, target))
        self.blocking = BlockingLinks(target)

    async def close(self) -> None:
        self.blocking.close()
        await super().close()
