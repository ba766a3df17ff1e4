"""Calls that had to wait for somebody who wrote the same rows: they act on what is there now."""

from __future__ import annotations

from ropeway.store.values import Record, StallRules
from ropeway.stores.postgres import PostgresStore
from ropeway.stores.postgres.placeholders import LOOK_AGAIN
from ropeway.testing.arrange import active, add_one, read
from ropeway.testing.factories import LOCK, NOW, QUEUE, SECOND, claim_request, lock_of

from .conftest import Other


async def test_a_lock_is_extended_after_an_update_of_its_job(store: PostgresStore, other: Other):
    held = await active(store)
    await other.run(
        f"SELECT ropeway.update_held('{QUEUE}', ARRAY['{held.id}'], ARRAY['{held.token}'], ARRAY['1'], "
        "NULL, NULL, NULL, NULL, NULL)"
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


async def test_a_due_job_that_another_transaction_has_locked_is_looked_for_at_intervals(
    store: PostgresStore, other: Other
):
    await add_one(store, delay=SECOND)
    await other.run("SELECT FROM ropeway.later FOR UPDATE")
    later = NOW + SECOND

    claimed = await store.claim(claim_request(), now=later)
    ticked = await store.tick(QUEUE, StallRules(), now=later)

    assert (claimed.jobs, claimed.again_at) == ([], later + LOOK_AGAIN)
    assert (ticked.promoted, ticked.next_at) == (0, later + LOOK_AGAIN)


async def test_a_stalled_job_that_another_transaction_has_locked_is_looked_for_at_intervals(
    store: PostgresStore, other: Other
):
    await active(store)
    await other.run("SELECT FROM ropeway.active FOR UPDATE")

    ticked = await store.tick(QUEUE, StallRules(), now=NOW + LOCK)

    assert (ticked.stalled, ticked.next_at) == ([], NOW + LOCK + LOOK_AGAIN)
