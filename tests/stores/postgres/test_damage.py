"""What somebody damaged by hand."""

from __future__ import annotations

from ropeway.stores.postgres import PostgresStore
from ropeway.testing.factories import QUEUE, new_job

from .conftest import Execute


async def test_a_damaged_entry_leaves_the_others_readable_and_is_told_once(store: PostgresStore, execute: Execute):
    for _ in range(3):
        await store.add([[new_job()]])
    await store.events(QUEUE)
    execute("UPDATE ropeway.step SET entries = 'x' WHERE number = (SELECT max(number) FROM ropeway.step)")

    page = await store.events(QUEUE)
    last = await store.events(QUEUE, page.entries[-1].id)

    assert (len(page.entries), page.gap) == (2, True)
    assert (last.entries, last.gap) == ([], True)
    for cursor in (page.cursor, last.cursor):
        rest = await store.events(QUEUE, cursor)
        assert (rest.entries, rest.gap) == ([], False)
