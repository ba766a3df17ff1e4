"""What a worker's sessions do before its first job."""

from __future__ import annotations

from ropeway.stores.postgres import PostgresStore
from ropeway.stores.postgres.connection import MOST_LINKS
from ropeway.testing.arrange import add, claim
from ropeway.testing.factories import QUEUE, new_jobs


async def test_a_rehearsal_goes_to_its_end_and_leaves_nothing(store: PostgresStore):
    [(how,)] = await store._executor.ask("rehearse")

    assert how == "done"
    assert await store.queues() == []


async def test_whoever_listens_to_jobs_gets_all_its_links_at_once(store: PostgresStore):
    listener = store.listen("jobs", [QUEUE])
    here = store._executor._everywhere.here()
    assert here._readying is not None

    await here._readying

    assert len(here.lanes._links) == MOST_LINKS
    listener.close()


async def test_jobs_are_claimed_behind_a_rehearsal(store: PostgresStore):
    listener = store.listen("jobs", [QUEUE])

    await add(store, *new_jobs(3))

    assert len(await claim(store, 5)) == 3
    listener.close()
