"""The memory store: each command is one step under its lock."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Sequence
from typing import Final, Self, TypeVar, cast
from weakref import WeakSet

from ...errors import InvalidOption, StoreUnavailable
from ...job.instants import Instant
from ...showing import shown
from ...store.commands import Command, Find
from ...store.contract import Store
from ...store.values import Page, Topic
from .door import Door
from .place import SHARED, Place
from .step import Step
from .verbs import VERBS
from .verbs.find import Search
from .wake import MemoryListener

A = TypeVar("A")

_URL: Final = re.compile(r"memory://([A-Za-z0-9][A-Za-z0-9._-]{0,127})?", re.IGNORECASE)
_TURN: Final = 0.001


class MemoryStore(Store):
    """Jobs in this process: `memory://` is a new store each time, `memory://name` the same for all who say it.

    Either lives as long as one of its handles, siblings included, is open: the last `close` forgets the jobs.
    """

    def __init__(self, url: str, name: str | None = None, place: Place | None = None) -> None:
        self.url = url
        self._name = name
        self._door = Door(url)
        self._place: Place | None = place or (SHARED.enter(name, self._door) if name else Place())
        self._listeners: WeakSet[MemoryListener] = WeakSet()
        self._turned_at = time.monotonic()

    @classmethod
    def from_url(cls, url: str, *, create: bool = True) -> Self:
        read = _URL.fullmatch(url)
        if read is None:
            raise InvalidOption(
                "url",
                f"cannot be {shown(url)}: use memory:// for a store of its own, or memory://name, "
                "of letters, digits, '.', '_' or '-', for one that is shared in this process",
            )
        if not create and not (read[1] and SHARED.has(read[1])):
            raise StoreUnavailable(
                url, "no such store lives in this process, and those of others cannot be seen from here"
            )
        return cls(url, read[1])

    async def open(self) -> None:
        self._usable()

    async def close(self) -> None:
        place, self._place = self._place, None
        if place is None or self._door.is_inherited:
            return
        self._door.is_open = False
        for listener in list(self._listeners):
            listener.close()
        if self._name:
            SHARED.leave(self._name, place, self._door)

    def sibling(self) -> Self:
        place = self._usable()
        return type(self)(self.url, self._name, None if self._name else place)

    def _usable(self) -> Place:
        self._door.check()
        assert self._place is not None, "a handle lets go of its place only when it is closed"
        return self._place

    async def _turn(self) -> Place:
        """What every verb begins with.

        Nothing here ever waits, so a task that only calls the store would keep all others of its loop from
        running: now and then it lets them.
        """
        place = self._usable()
        moment = time.monotonic()
        if moment - self._turned_at > _TURN:
            self._turned_at = moment
            await asyncio.sleep(0)
            place = self._usable()
        return place

    async def do(self, command: Command[A], now: Instant | None = None) -> A:
        if isinstance(command, Find):
            return cast(A, await self._find(command))
        with Step(await self._turn(), now) as step:
            answer: A = VERBS[type(command)](step, command)
            return answer

    async def _find(self, command: Find) -> Page:
        search = Search(command)
        while True:
            place = await self._turn()
            with place.lock:
                page = search.look(place.book(command.queue))
            if page is not None:
                return page

    def listen(self, topic: Topic, queues: Sequence[str]) -> MemoryListener:
        listener = MemoryListener(self._usable().hub, self._door, topic, queues)
        self._listeners.add(listener)
        return listener
