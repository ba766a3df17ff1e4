"""What happens to a worker's queues beside its own work, for its listeners."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from ..job.events import Event, expand
from ..store.contract import Store
from .listeners import OF_QUEUES
from .service import Service, insist

SAFETY_POLL: Final = 5.0


class Follower(Service):
    """Reads the events of a queue, and tells those that a worker does not tell by itself."""

    def __init__(self, store: Store, queue: str, tell: Callable[[Event], None]) -> None:
        self.queue: Final = queue
        self._store = store
        self._tell = tell
        self._listener = store.listen("events", [queue])
        self._cursor: str | None = None
        self._beginning = asyncio.Lock()

    async def begin(self) -> None:
        """Nothing that happens after this is missed."""
        async with self._beginning:
            if self._cursor is None:
                self._cursor = (await insist(lambda _: self._store.events(self.queue, "now"), "events")).cursor

    async def run(self) -> None:
        await self.begin()
        await super().run()

    def close(self) -> None:
        self._listener.close()

    async def step(self) -> None:
        if not await self._read():
            await self._listener.wait(SAFETY_POLL)

    async def catch_up(self) -> None:
        """Tells the rest, after it was stopped."""
        while self._cursor is not None and await self._read():
            pass

    async def _read(self) -> bool:
        """Tells what has happened since it last looked; whether there was anything at all."""
        page = await self._store.events(self.queue, self._cursor)
        self._cursor = page.cursor
        for stored in page.entries:
            for event in expand(self.queue, stored.id, stored.entry):
                if event.name in OF_QUEUES:
                    self._tell(event)
        return bool(page.entries)
