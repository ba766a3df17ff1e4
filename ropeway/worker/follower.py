"""Reading the event streams of a worker's queues, for its listeners."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from ..job.events import Event, expand
from ..store.contract import Store
from .listeners import OF_QUEUES
from .service import Service, until_answered

SAFETY_POLL: Final = 5.0


class Follower(Service):
    """Reads the events of one queue, and emits those that the worker does not emit itself."""

    def __init__(self, store: Store, queue: str, emit: Callable[[Event], None]) -> None:
        self.queue: Final = queue
        self._store = store
        self._emit = emit
        self._listener = store.listen("events", [queue])
        self._cursor: str | None = None
        self._beginning = asyncio.Lock()

    async def begin(self) -> None:
        """Takes the starting cursor: no event after this is missed."""
        async with self._beginning:
            if self._cursor is None:
                self._cursor = (await until_answered(lambda _: self._store.events(self.queue, "now"), "events")).cursor

    async def run(self) -> None:
        await self.begin()
        await super().run()

    def close(self) -> None:
        self._listener.close()

    async def step(self) -> None:
        if not await self._read():
            await self._listener.wait(SAFETY_POLL)

    async def catch_up(self) -> None:
        """Emits the remaining events, after `run` was cancelled."""
        while self._cursor is not None and await self._read():
            pass

    async def _read(self) -> bool:
        """Emits the events since the last read. True if there were any."""
        page = await self._store.events(self.queue, self._cursor)
        self._cursor = page.cursor
        for stored in page.entries:
            for event in expand(self.queue, stored.id, stored.entry):
                if event.name in OF_QUEUES:
                    self._emit(event)
        return bool(page.entries)
