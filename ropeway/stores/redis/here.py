"""What a handle has on one event loop, and on threads that have none."""

from __future__ import annotations

from functools import partial

from ...store import loops
from .blocking import BlockingLinks
from .keys import Keys
from .listing import Listing
from .reaching import reach
from .target import Target


class Here(loops.LoopResources):
    def __init__(self, target: Target, everywhere: loops.PerLoop[Here]) -> None:
        super().__init__(everywhere)
        self.commands, self.ear = reach(target)
        self.listing = Listing(self.commands, Keys(target.prefix).queues)

    async def close(self) -> None:
        await self.listing.close()
        await self.ear.close()
        await self.commands.close()


class Everywhere(loops.PerLoop[Here]):
    def __init__(self, target: Target) -> None:
        super().__init__(partial(Here, target))
        self.blocking = BlockingLinks(target)

    async def close(self) -> None:
        self.blocking.close()
        await super().close()
