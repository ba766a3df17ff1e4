"""The server that the sentinels call the primary, and links that end when it is replaced.

A primary that was cut off or stopped, and replaced, takes writes again when it comes back, until a sentinel turns it
into a replica some seconds later; then they are gone. So whoever has a link asks the sentinels, all of them:

    when one of them announces a switch, and once a second    a link to a server that is no longer named is ended
    before a call, if the last answer is older than `LEASE`   this process may have been stopped too
    after a call that took longer than that                   its answer may be that of a server that came back

The newest epoch counts: a sentinel that was cut off from the others still names the old primary. If no sentinel
answers, calls go on with the server that was named last.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from ...errors import StoreError, StoreUnavailable
from ...store.doubt import unknown
from ...store.single_flight import SingleFlight
from ...store.tries import CONNECTING
from .connection import Connection, open_link
from .link import Argument, Hear, Link
from .sentinel import Sentinel, View
from .target import Target

LOOK_EVERY: Final = 1.0
LEASE: Final = 2.0
"""Seconds for which an answer of the sentinels is good: less than a primary is given before it is replaced."""
UNWATCHED: Final = 30.0
"""Seconds for which no call waits for the sentinels, if none of them answered."""
SOON: Final = 0.3
"""Seconds after the first answer in which those of the other sentinels are waited for."""


class Sentinels:
    def __init__(self, target: Target) -> None:
        self.changes = 0
        """How often another server was named."""
        self._target = target
        self._news = asyncio.Event()
        self._all = [Sentinel(target, place, self._news.set) for place in target.seeds]
        self._tasks: list[asyncio.Task[None]] = []
        self._looking = SingleFlight(target.url, self._look)
        self._loop = asyncio.get_running_loop()
        self._asked_at = 0.0
        self._good_until = 0.0
        self._current: View | None = None
        self._links: dict[Link, tuple[str, int]] = {}

    async def open_link(self, hear: Hear | None = None, patience: float = CONNECTING) -> Link:
        """Opens a link to the primary, which is closed when the sentinels name another server."""
        self._begin()
        end = self._loop.time() + patience
        view = await self._named(patience)
        self._turn_to(view)
        link = await open_link(self._target.at(*view.place), hear, max(0.1, end - self._loop.time()))
        if view.place != self._current_place:
            link.abort()
            raise StoreUnavailable(self._target.url, "the primary changed meanwhile")
        self._links = {link: place for link, place in self._links.items() if link.is_up} | {link: view.place}
        return link

    async def confirm(self) -> None:
        """Makes sure that the sentinels were asked recently, and that links to a replaced primary are closed."""
        now = self._loop.time()
        if now < self._good_until:
            return
        with suppress(StoreError):
            await self._looking.result()
            if self._asked_at < now:
                # It was under way before, and what it heard may be as old as that.
                await self._looking.result()

    async def look(self) -> None:
        with suppress(StoreError):
            await self._looking.result()

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._looking.close()
        for sentinel in self._all:
            await sentinel.close()

    def _begin(self) -> None:
        if not self._tasks:
            work = (self._watch(), *(sentinel.follow() for sentinel in self._all))
            self._tasks = [self._loop.create_task(each, name="ropeway-redis-sentinel") for each in work]

    async def _watch(self) -> None:
        while True:
            self._news.clear()
            await self.look()
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_EVERY):
                    await self._news.wait()

    async def _named(self, patience: float) -> View:
        try:
            async with asyncio.timeout(patience):
                return await self._looking.result()
        except TimeoutError as error:
            raise StoreUnavailable(self._target.url, f"no sentinel answers within {patience:g} s") from error

    async def _look(self) -> View:
        """Asks all sentinels at once, and closes links to servers that they no longer name."""
        self._asked_at = self._loop.time()
        asking = [asyncio.create_task(sentinel.view()) for sentinel in self._all]
        try:
            newest = self._newest(await _answers(asking))
        except StoreError:
            self._good_until = self._loop.time() + UNWATCHED
            raise
        finally:
            for task in asking:
                task.cancel()
        self._good_until = self._asked_at + LEASE
        if self._current is None or newest.epoch >= self._current.epoch:
            self._turn_to(newest)
        return newest

    def _newest(self, views: Sequence[View]) -> View:
        epoch = max(view.epoch for view in views)
        named = [view for view in views if view.epoch == epoch]
        # Sentinels may have several names for one server: no reason to change.
        return next((view for view in named if view.place == self._current_place), named[0])

    @property
    def _current_place(self) -> tuple[str, int] | None:
        return None if self._current is None else self._current.place

    def _turn_to(self, view: View) -> None:
        self.changes += self._current_place not in (None, view.place)
        self._current = view
        for link, place in self._links.items():
            if place != view.place:
                link.abort()


async def _answers(asking: Sequence[asyncio.Task[View]]) -> list[View]:
    """The answers that come soon after the first one; if there is none, raises the last error."""
    late: set[asyncio.Task[View]] = set(asking)
    views: list[View] = []
    trouble: BaseException | None = None
    while late:
        done, late = await asyncio.wait(
            late, timeout=SOON if views else CONNECTING, return_when=asyncio.FIRST_COMPLETED
        )
        if not done:
            break
        for task in done:
            if (error := task.exception()) is None:
                views.append(task.result())
            else:
                trouble = error
    if views:
        return views
    raise trouble or TimeoutError


class PrimaryConnection(Connection):
    """The connection of a handle to the current primary."""

    def __init__(self, target: Target, sentinels: Sentinels) -> None:
        super().__init__(target, sentinels.open_link)
        self._sentinels = sentinels

    async def ask(self, key: str, *command: Argument) -> Any:
        sentinels = self._sentinels
        await sentinels.confirm()
        changes = sentinels.changes
        answer = await super().ask(key, *command)
        await sentinels.confirm()
        if sentinels.changes != changes:
            raise unknown(self.target.url, "the primary was replaced before its answer came")
        return answer

    async def _look_elsewhere(self, code: str) -> None:
        # One that was replaced has no replicas.
        if code in ("READONLY", "NOREPLICAS"):
            await self._sentinels.look()
        await super()._look_elsewhere(code)

    async def close(self) -> None:
        await super().close()
        await self._sentinels.close()
