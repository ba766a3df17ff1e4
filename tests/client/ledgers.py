"""A table of the application's own beside its jobs, on each store that shares transactions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ropeway import Queue
from tests.stores.databases import new_database_place, new_schema


class Ledger(NamedTuple):
    queue: Queue
    url: str
    insert: str
    """A statement that notes one text."""
    select: str

    async def notes(self) -> list[str]:
        """What is in the table, for everybody to see."""
        async with self.queue.transaction() as tx:
            rows = await tx.execute(self.select)
            return [note for (note,) in (rows if isinstance(rows, list) else await rows.fetchall())]

    async def is_untouched(self) -> bool:
        """Whether nothing ever happened here, as far as anybody can see."""
        events = [event async for event in self.queue.events("start", follow=False)]
        counts, metrics = await self.queue.counts(), await self.queue.metrics()
        return not (events or any(counts.values()) or metrics or await self.notes())


@pytest.fixture(params=["sqlite", "postgres"])
async def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Ledger]:
    table, mark = "note", "?"
    url = f"sqlite:///{tmp_path}/jobs.db"
    if request.param == "postgres":
        schema = new_schema()
        url, table, mark = new_database_place(schema), f"{schema}_note", "%s"
    async with Queue("letters", url) as queue:
        async with queue.transaction() as tx:
            await tx.execute(f"CREATE TABLE {table} (text text)")
        yield Ledger(queue, url, f"INSERT INTO {table} VALUES ({mark})", f"SELECT text FROM {table} ORDER BY text")


def rows_of(answer: Any) -> list[tuple[Any, ...]]:
    """Of a sync statement, on either store."""
    return answer if isinstance(answer, list) else answer.fetchall()
