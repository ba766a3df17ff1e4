"""Calls that had to wait for somebody who wrote the same rows: they act on what is there now."""

from __future__ import annotations

from ropeway.store.values import Record
from ropeway.stores.postgres import PostgresStore
from ropeway.testing.arrange import active, read
from ropeway.testing.factories import LOCK, NOW, QUEUE, SECOND, lock_of

from .conftest import Other


async def test_a_lock_is_extended_after_an_update_of_its_job(store: PostgresStore, other: Other):
    held = await active(store)
    await other.run(
        f"SELECT ropeway.update_held('{QUEUE}', ARRAY['{held.id}'], ARRAY['{held.token}'], ARRAY['1'], "
        "NULL, NULL, NULL, NULL)"
    )

    [answer] = await other.commit_when_waited_for(store.renew(QUEUE, [lock_of(held)], LOCK, now=NOW + SECOND))

    job = await read(store, held.id)
    assert (answer.verdict, job.lock_until, job.renewed_at) == ("done", NOW + SECOND + LOCK, NOW + SECOND)
    assert job.progress == "1"


async def test_a_record_is_not_written_over_one_that_is_being_forgotten(store: PostgresStore, other: Other):
    await store.remember(Record("schedule", "s", "1"))
    await other.run("SELECT ropeway.forget('schedule', 's')")

    remembered = await other.commit_when_waited_for(store.remember(Record("schedule", "s", "2"), expect=1))

    assert (remembered.verdict, remembered.record) == ("lost", None)
    assert await store.recall("schedule") == []
