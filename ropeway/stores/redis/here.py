"""What a handle has on one event loop. A queue may be used on several, each in a thread of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from weakref import WeakKeyDictionary

from .blocking import BlockingLinks
from .reaching import reach
from .target import Target
from .wake import Ear


class Here:
    def __init__(self, target: Target) -> None:
        self.loop = asyncio.get_running_loop()
        self.commands, find = reach(target)
        self.ear = Ear(find)
        self._end: AsyncGenerator[None, None] | None = None

    @property
    def is_settled(self) -> bool:
        return self._end is not None

    async def settle(self) -> None:
        """Call it before the first command: a loop that ends, as that of `asyncio.run`, then leaves nothing open."""
        self._end = self._at_the_end()
        await anext(self._end)

    async def _at_the_end(self) -> AsyncGenerator[None, None]:
        # A loop that shuts down closes the generators that were begun on it.
        try:
            yield
        finally:
            await self.close()

    async def close(self) -> None:
        await self.ear.close()
        await self.commands.close()


class Everywhere:
    """One `Here` for each loop, and links for the threads that have none."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self.blocking = BlockingLinks(target)
        self._places: WeakKeyDictionary[asyncio.AbstractEventLoop, Here] = WeakKeyDictionary()
        self._last: Here | None = None

    def here(self) -> Here:
        loop = asyncio.get_running_loop()
        last = self._last
        if last is not None and last.loop is loop:
            return last
        place = self._places.get(loop)
        if place is None:
            place = self._places[loop] = Here(self._target)
        self._last = place
        return place

    async def close(self) -> None:
        loop = asyncio.get_running_loop()
        self._last = None
        self.blocking.close()
        places = [*self._places.values()]
        self._places.clear()
        for place in places:
            if place.loop is loop:
                await place.close()
            elif place.loop.is_running():
                await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(place.close(), place.loop))
