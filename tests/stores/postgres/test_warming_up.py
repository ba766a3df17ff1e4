"""What a worker's sessions do before its first job."""

from __future__ import annotations

from ropeway.stores.postgres import PostgresStore
from ropeway.stores.postgres.pool import MOST_LINKS
from ropeway.testing.arrange import add, claim
from ropeway.testing.factories import QUEUE, new_jobs


async def test_warming_up_runs_to_its_end_and_leaves_nothing(store: PostgresStore):
    [(how,)] = await store._executor.call("warm_up")

    assert how == "done"
    assert await store.queues() == []


async def test_whoever_listens_to_jobs_gets_all_its_links_at_once(store: PostgresStore):
    listener = store.listen("jobs", [QUEUE])
    resources = store._executor.resources()
    assert resources._warming is not None

    await resources._warming

    assert len(resources.pool._links) == MOST_LINKS
    listener.close()


async def test_jobs_are_claimed_after_a_link_was_warmed_up(store: PostgresStore):
    listener = store.listen("jobs", [QUEUE])

    await add(store, *new_jobs(3))

    assert len(await claim(store, 5)) == 3
    listener.close()
