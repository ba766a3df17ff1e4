"""The schedules of a queue as last read, with few reads."""

from __future__ import annotations

from typing import Final

from ..job.instants import Instant, Milliseconds
from ..store.contract import Store
from ..store.values import StoredSchedule

MOST_SCHEDULES: Final = 1_000
"""Most schedules of a queue that are read: each comes with its data and history."""


class KnownSchedules:
    """Reads all schedules now and then, and in between only those that were due."""

    def __init__(self, again: Milliseconds) -> None:
        """`again` is the time after which all are read again."""
        self.by_id: dict[str, StoredSchedule] = {}
        self._again = again
        self._read_at: Instant = -again

    async def look(self, store: Store, queue: str, now: Instant) -> None:
        if now - self._read_at >= self._again:
            self.by_id = {each.id: each for each in await store.schedules(queue, limit=MOST_SCHEDULES)}
            self._read_at = now
        elif due := [id for id, each in self.by_id.items() if each.next_at is not None and each.next_at <= now]:
            self.by_id |= {each.id: each for each in await store.schedules(queue, due)}

    def lag(self, now: Instant) -> Milliseconds:
        """How late the most late one is; 0 if none is due."""
        return max((0, *(now - each.next_at for each in self.by_id.values() if each.next_at is not None)))
