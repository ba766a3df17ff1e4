"""Reading a queue's events in bounded portions."""

from __future__ import annotations

from typing import Final, NamedTuple

from ...job.events import Entry
from ...store.contract import Store

PORTION: Final = 1_000
PORTIONS: Final = 2
"""Most entries per interval. If there are more, it jumps to the newest: counts do not depend on events."""


class Heard(NamedTuple):
    entries: list[Entry]
    missed: bool = False
    """True if entries were skipped, because they were trimmed or too many."""
    first: bool = False

    @property
    def is_news(self) -> bool:
        """False if the queue has not changed: every change writes an entry."""
        return bool(self.entries) or self.missed or self.first


class EventStream:
    """Polls instead of listening: a listener would cost every writer a wake-up, and many reads on a busy queue."""

    def __init__(self, queue: str, *, is_new: bool = False) -> None:
        """Reads a new queue from its beginning, an existing one from now on."""
        self._queue = queue
        self._is_new = is_new
        self._cursor: str | None = None

    async def read(self, store: Store) -> Heard:
        first = self._cursor is None
        if first and not self._is_new:
            self._cursor = await self._newest(store)
            return Heard([], first=True)
        entries: list[Entry] = []
        missed = False
        for _ in range(PORTIONS):
            page = await store.events(self._queue, self._cursor, limit=PORTION)
            self._cursor = page.cursor
            entries += [stored.entry for stored in page.entries]
            missed = missed or page.gap
            if len(page.entries) < PORTION:
                return Heard(entries, missed, first)
        newest = await self._newest(store)
        missed = missed or newest != self._cursor
        self._cursor = newest
        return Heard(entries, missed, first)

    async def _newest(self, store: Store) -> str:
        return (await store.events(self._queue, "now")).cursor
