"""The newest events of queues, from the newest back to older ones: a bounded number, and merged by time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from ..job.events import Event, expand_backwards, may_hold, split_id
from ..store.values import BATCH, StoredEntry

if TYPE_CHECKING:
    from .queue import Queue

FIRST_PAGE: Final = 2
"""Entries of the first read of a queue, each of which may be of many jobs; later ones are larger."""
GROWTH: Final = 4


class Wanted(NamedTuple):
    name: str | None = None
    job_id: str | None = None

    def includes(self, event: Event) -> bool:
        return self.name in (None, event.name) and self.job_id in (None, event.job_id)


class PastEvents(NamedTuple):
    events: list[Event]
    """The newest first."""
    looked_at: int
    """Events, and entries of many in which none was wanted."""
    next: str | None
    """Of one queue: the `before` of the next page; None for several queues."""
    has_more: bool


async def newest_events(
    queues: Sequence[Queue], wanted: Wanted, *, limit: int, most: int, before: str | None = None
) -> PastEvents:
    """Up to `limit` events that are wanted, of all queues together; about `most` are looked at.

    With `before`, the id of an event, those of one queue that are older.
    """
    readers = [_Reader(queue, wanted) for queue in queues]
    if before is not None and readers:
        await readers[0].begin_before(before)
    found: list[Event] = []
    last = before
    looked_at = 0
    while len(found) < limit and looked_at < most:
        for reader in readers:
            looked_at += await reader.fill(most - looked_at)
        ready = [(reader.event.at, reader) for reader in readers if reader.event is not None]
        if not ready:
            last = readers[0].place or last if readers else None
            break
        # Of equal times the first queue's, so that the order is always the same.
        event = max(ready, key=lambda each: each[0])[1].pop()
        looked_at += 1
        last = event.id
        if wanted.includes(event):
            found.append(event)
    has_more = any(reader.has_more for reader in readers)
    return PastEvents(found, looked_at, last if len(queues) == 1 else None, has_more)


class _Reader:
    """One queue's events, backwards."""

    def __init__(self, queue: Queue, wanted: Wanted) -> None:
        self._queue = queue
        self._wanted = wanted
        self._entries: deque[StoredEntry] = deque()
        self._cursor: str | None = None
        self._size = FIRST_PAGE
        self._is_over = False
        self._rest: Iterator[Event] = iter(())
        """Of the entry of `event`, those before it. An entry may be of a thousand jobs, of which a few are needed."""
        self.event: Event | None = None
        """The newest that is not yet taken."""
        self.place: str | None = None
        """The last entry that was looked at, if nothing of it is left."""

    @property
    def has_more(self) -> bool:
        return self.event is not None or bool(self._entries) or not self._is_over

    def pop(self) -> Event:
        event, self.event = self.event, next(self._rest, None)
        assert event is not None
        return event

    async def begin_before(self, id: str) -> None:
        entry, number = split_id(id)
        self._cursor = entry
        if "/" in id:
            page = await self._queue.store.events(self._queue.name, entry, inclusive=True, limit=1)
            if not page.gap and page.entries and page.entries[0].id == entry:
                self._take(page.entries[0], number)

    async def fill(self, most: int) -> int:
        """Lets it have an event, unless it is at its end; answers how many entries it has passed over, up to `most`."""
        passed = 0
        while self.event is None and self.has_more and passed < most:
            if not self._entries:
                page = await self._queue.store.events(
                    self._queue.name, self._cursor, limit=self._size, newest_first=True
                )
                self._entries.extend(page.entries)
                self._is_over = not page.entries
                self._cursor, self._size = page.cursor, min(self._size * GROWTH, BATCH)
                continue
            stored = self._entries.popleft()
            if may_hold(stored.entry, *self._wanted):
                self._take(stored)
            else:
                passed += 1
                self.place = stored.id
        return passed

    def _take(self, stored: StoredEntry, before: int = 2**53) -> None:
        events = expand_backwards(self._queue.name, stored.id, stored.entry)
        self._rest = (event for event in events if split_id(event.id)[1] < before)
        self.event = next(self._rest, None)
