"""Resources of one store handle, per event loop: a queue may be used on several loops, each in its own thread."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any, Generic, TypeVar

from . import forks


class LoopResources:
    """Resources on one loop, such as connections; each store defines a subclass."""

    def __init__(self, owner: PerLoop[Any]) -> None:
        self.loop = asyncio.get_running_loop()
        self._owner = owner
        self._end: AsyncGenerator[None, None] | None = None

    @property
    def closes_with_loop(self) -> bool:
        return self._end is not None

    async def close_with_loop(self) -> None:
        """Arranges that `close` runs when the loop shuts down, as at the end of `asyncio.run`."""
        self._end = self._at_the_end()
        await anext(self._end)

    async def _at_the_end(self) -> AsyncGenerator[None, None]:
        # A loop that shuts down closes the async generators that were started on it.
        try:
            yield
        finally:
            self._owner.forget(self)
            await self.close()

    async def close(self) -> None:
        raise NotImplementedError


P = TypeVar("P", bound=LoopResources)


class PerLoop(Generic[P]):
    """Creates the resources of each loop on first use, and keeps them until the loop ends."""

    def __init__(self, make: Callable[[PerLoop[P]], P]) -> None:
        self._make = make
        # Weak keys would be useless: the resources reference their loop.
        self._resources: dict[asyncio.AbstractEventLoop, P] = {}
        self._last: P | None = None
        forks.follow(self)

    def here(self) -> P:
        """The resources on the running loop."""
        loop = asyncio.get_running_loop()
        last = self._last
        if last is not None and last.loop is loop:
            return last
        resources = self._resources.get(loop)
        if resources is None:
            self._forget_closed()
            resources = self._resources[loop] = self._make(self)
        self._last = resources
        return resources

    def forget(self, resources: LoopResources) -> None:
        self._resources.pop(resources.loop, None)
        if self._last is resources:
            self._last = None

    def _forget_closed(self) -> None:
        """Drops the resources of loops that were closed without a shutdown."""
        for loop, resources in [*self._resources.items()]:
            if loop.is_closed():
                self.forget(resources)

    def reset_after_fork(self) -> object:
        inherited, self._resources, self._last = (self._resources, self._last), {}, None
        return inherited

    async def close(self) -> None:
        loop = asyncio.get_running_loop()
        everything, self._resources, self._last = [*self._resources.values()], {}, None
        for resources in everything:
            if resources.loop is loop:
                await resources.close()
            elif resources.loop.is_running():
                await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(resources.close(), resources.loop))
