"""A queue's events, read in bounded portions."""

from __future__ import annotations

from typing import Final, NamedTuple

from ...job.events import Entry
from ...store.contract import Store

PORTION: Final = 1_000
PORTIONS: Final = 2
"""At each look. Whoever is further behind than that jumps to the newest entry: the counts do not depend on events."""


class Heard(NamedTuple):
    entries: list[Entry]
    missed: bool = False
    """There were others, which were trimmed before they were read, or too many."""
    first: bool = False

    @property
    def is_news(self) -> bool:
        """Every change of a queue writes an entry, so without one nothing need be read again."""
        return bool(self.entries) or self.missed or self.first


class EventStream:
    """Asks instead of listening: a listener would cost every writer a wake, and a busy queue many reads a second."""

    def __init__(self, queue: str, *, is_new: bool = False) -> None:
        """A new queue is read from its beginning, one that was there before from now on."""
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
