"""What is live: one reader of the store per queue tells all open pages that something has changed.

A message says only that; the page then fetches its moving parts, with the rights of its visitor.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from ...errors import RopewayError, StoreError
from ...job.events import Event
from ...logger import log
from ..problems import Refused

if TYPE_CHECKING:
    from ...client.queue import Queue
    from ..application import Broker

PAUSE: Final = 1.0
"""Seconds between two messages to a page, at least."""
IDLE: Final = 15.0
"""Seconds after which a page is told to look again though nothing happened: workers come and go without an event."""
MOST_VIEWERS: Final = 500
MOST_WATCHED: Final = 200
"""Most queues that one page follows; what happens in others it sees when it looks again."""
CHANGE: Final = b"event: change\ndata: {}\n\n"


class Viewer:
    def __init__(self, job: str | None) -> None:
        self.job = job
        """If given, only events of this job are changes."""
        self.changed: Final = asyncio.Event()


class Changes:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._viewers: dict[str, set[Viewer]] = {}
        """By queue."""
        self._readers: dict[str, asyncio.Task[None]] = {}
        self.open = 0
        """How many pages follow now."""

    def follow(self, queues: Callable[[], Awaitable[list[Queue]]], job: str | None) -> AsyncGenerator[bytes, None]:
        """Messages for one page, for as long as it is open. Refused before the first, if too many are open."""
        if self.open >= MOST_VIEWERS:
            raise Refused(503, "overloaded", "too many pages are open", headers={"retry-after": "10"})
        return self._messages(queues, job)

    async def _messages(
        self, queues: Callable[[], Awaitable[list[Queue]]], job: str | None
    ) -> AsyncGenerator[bytes, None]:
        self.open += 1
        viewer = Viewer(job)
        closing = asyncio.ensure_future(self._broker.closing.wait())
        try:
            yield b"retry: 2000\n\n"
            while not closing.done():
                # A page outlives an outage of its store: what it watched before is watched on.
                with suppress(StoreError):
                    self._watch(viewer, (await queues())[:MOST_WATCHED])
                changed = asyncio.ensure_future(viewer.changed.wait())
                try:
                    await asyncio.wait([changed, closing], timeout=IDLE, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    changed.cancel()
                viewer.changed.clear()
                yield CHANGE
                await asyncio.wait([closing], timeout=PAUSE)
        finally:
            self.open -= 1
            closing.cancel()
            self._watch(viewer, [])

    def _watch(self, viewer: Viewer, queues: list[Queue]) -> None:
        wanted = {queue.name: queue for queue in queues}
        for name, viewers in [*self._viewers.items()]:
            if name not in wanted:
                viewers.discard(viewer)
                if not viewers:
                    del self._viewers[name]
                    self._readers.pop(name).cancel()
        for name, queue in wanted.items():
            viewers = self._viewers.setdefault(name, set())
            if viewer not in viewers:
                viewers.add(viewer)
                # Something may have happened since the page was made.
                viewer.changed.set()
            if name not in self._readers:
                self._readers[name] = asyncio.create_task(self._read(queue), name=f"ropeway-changes-{name}")

    async def _read(self, queue: Queue) -> None:
        viewers = self._viewers[queue.name]

        def note(event: Event) -> bool:
            for viewer in viewers:
                if viewer.job is None or event.job_id == viewer.job:
                    viewer.changed.set()
            return False  # Nothing is kept: that something happened is all that is told.

        while True:
            try:
                subscription = await queue.hub.subscribe(note)
                for viewer in viewers:
                    viewer.changed.set()
                try:
                    while await subscription.next(3600) is None:
                        pass
                finally:
                    with suppress(RopewayError):
                        await queue.hub.unsubscribe(subscription)
            except RopewayError as error:
                log.warning("the events of %r cannot be read now: %s", queue.name, error)
            await asyncio.sleep(IDLE)
