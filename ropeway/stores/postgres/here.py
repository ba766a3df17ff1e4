"""What a handle has on one event loop. A queue may be used on several, each in a thread of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
from weakref import WeakKeyDictionary

from ...errors import StoreError
from .bell import Bell
from .connection import Lanes
from .spares import Spares
from .target import Target
from .wake import Ear


class Here:
    def __init__(self, target: Target) -> None:
        self.loop = asyncio.get_running_loop()
        self.lanes = Lanes(target)
        self.bell = Bell(target, self.lanes)
        self.ear = Ear(target)
        self.spares = Spares(target)
        self._end: AsyncGenerator[None, None] | None = None
        self._readying: asyncio.Task[None] | None = None

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

    def make_ready(self) -> None:
        """For work that is soon to come; nobody has to wait for it."""
        if self._readying is None:
            self._readying = self.loop.create_task(self._make_ready())

    async def _make_ready(self) -> None:
        if not self.is_settled:
            await self.settle()
        with suppress(StoreError):
            await self.lanes.make_ready()

    async def close(self) -> None:
        if self._readying is not None and not self._readying.done():
            self._readying.cancel()
            await asyncio.wait([self._readying])
        await self.ear.close()
        await self.bell.close()
        await self.spares.close()
        await self.lanes.close()


class Everywhere:
    """One `Here` for each loop."""

    def __init__(self, target: Target) -> None:
        self._target = target
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
        places = [*self._places.values()]
        self._places.clear()
        for place in places:
            if place.loop is loop:
                await place.close()
            elif place.loop.is_running():
                await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(place.close(), place.loop))
