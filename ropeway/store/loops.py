"""What a handle has on each event loop. A queue may be used on several, each in a thread of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any, Generic, TypeVar

from . import forks


class Place:
    """What a handle has on one loop: a store says what that is."""

    def __init__(self, everywhere: Everywhere[Any]) -> None:
        self.loop = asyncio.get_running_loop()
        self._everywhere = everywhere
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
            self._everywhere.forget(self)
            await self.close()

    async def close(self) -> None:
        raise NotImplementedError


P = TypeVar("P", bound=Place)


class Everywhere(Generic[P]):
    """One place for each loop, until that ends."""

    def __init__(self, make: Callable[[Everywhere[P]], P]) -> None:
        self._make = make
        # No weak keys: what is in a place holds its loop.
        self._places: dict[asyncio.AbstractEventLoop, P] = {}
        self._last: P | None = None
        forks.follow(self)

    def here(self) -> P:
        loop = asyncio.get_running_loop()
        last = self._last
        if last is not None and last.loop is loop:
            return last
        place = self._places.get(loop)
        if place is None:
            self._forget_closed()
            place = self._places[loop] = self._make(self)
        self._last = place
        return place

    def forget(self, place: Place) -> None:
        self._places.pop(place.loop, None)
        if self._last is place:
            self._last = None

    def _forget_closed(self) -> None:
        """Loops that were closed and not shut down before."""
        for loop, place in [*self._places.items()]:
            if loop.is_closed():
                self.forget(place)

    def begin_anew(self) -> object:
        inherited, self._places, self._last = (self._places, self._last), {}, None
        return inherited

    async def close(self) -> None:
        loop = asyncio.get_running_loop()
        places, self._places, self._last = [*self._places.values()], {}, None
        for place in places:
            if place.loop is loop:
                await place.close()
            elif place.loop.is_running():
                await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(place.close(), place.loop))
