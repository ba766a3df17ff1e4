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

    def __init__(self, queue: str) -> None:
        self._queue = queue
        self._cursor: str | None = None

    async def read(self, store: Store) -> Heard:
        if self._cursor is None:
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
                return Heard(entries, missed)
        newest = await self._newest(store)
        missed = missed or newest != self._cursor
        self._cursor = newest
        return Heard(entries, missed)

    async def _newest(self, store: Store) -> str:
        return (await store.events(self._queue, "now")).cursor
