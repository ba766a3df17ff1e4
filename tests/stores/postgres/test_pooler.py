"""Behind a pooler in transaction mode: every verb works, nothing is kept in a session, and waiting is by polling."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator

import pytest

from ropeway import Job, Queue, Worker
from ropeway.errors import StoreRefused
from ropeway.store.commands import Find
from ropeway.store.values import JobUpdate, Lock, Record, StallRules
from ropeway.stores.postgres import PostgresStore
from ropeway.testing.arrange import add, claim, read
from ropeway.testing.factories import QUEUE, claim_request, complete, fail, new_job, new_jobs
from tests.stores.databases import DatabaseProcess
from tests.stores.waiting import until

from .conftest import OpenStore
from .pooling import SESSIONS, Pooler, pooled


@pytest.fixture
async def pooler(server: DatabaseProcess) -> AsyncIterator[Pooler]:
    async with pooled(server) as pooler:
        yield pooler


@pytest.fixture
def store(open_store: OpenStore, pooler: Pooler) -> PostgresStore:
    return open_store(pooler.url())


async def test_every_verb_works_through_a_pooler(store: PostgresStore, pooler: Pooler):
    await add(store, *new_jobs(6), new_job("later", delay=60_000))
    first, second, third = await claim(store, 3)
    assert [answer.verdict for answer in await store.renew(QUEUE, [Lock(first.id, first.token or "")], 1_000)] == [
        "done"
    ]
    await store.update(QUEUE, [JobUpdate(first.id, first.token, progress="1")])
    settled = await store.settle(QUEUE, [complete(first), fail(second)], claim_request(1))
    assert [answer.verdict for answer in settled.answers] == ["done", "done"]
    await store.cancel(QUEUE, [third.id])
    await store.retry(QUEUE, [second.id])
    await store.promote(QUEUE, ["later"])
    await store.tick(QUEUE, StallRules())
    await store.configure(QUEUE, max_active=5)
    assert (await store.remember(Record("kind", "key", "1"))).verdict == "done"
    assert len((await store.find(Find(QUEUE, ("waiting",)))).jobs) == 4
    assert (await store.count(QUEUE))["completed"] == 1
    assert (await read(store, third.id)).state == "cancelled"
    assert (await store.events(QUEUE)).entries
    await store.remove(QUEUE, [third.id])
    await store.obliterate(QUEUE, force=True)

    assert max(map(len, pooler.sessions_of.values())) == SESSIONS, "its transactions went through different sessions"


async def test_a_worker_polls_behind_a_pooler_and_leaves_nothing_in_its_sessions(
    pooler: Pooler, server: DatabaseProcess
):
    runs: Counter[int] = Counter()

    async def handle(job: Job) -> None:
        runs[job.data] += 1

    async with Queue("letters", pooler.url()) as queue, Worker(queue, handle, concurrency=4):
        await queue.add_many([("send", number) for number in range(100)])
        await until(lambda: len(runs) == 100)
        await queue.add("send", 100, delay=0.1)
        await until(lambda: runs[100])

        assert set(runs.values()) == {1}
        assert server.execute("SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ShareLock'") == []
        assert server.execute("SELECT 1 FROM pg_stat_activity WHERE query LIKE 'LISTEN%'") == []


async def test_transactions_of_the_store_s_own_rely_on_nothing_in_its_sessions(pooler: Pooler):
    async with Queue("letters", pooler.url()) as queue:
        for _ in range(SESSIONS):
            async with queue.transaction() as tx:
                # More often than it takes psycopg to prepare a statement.
                for _ in range(8):
                    await queue.add("send", tx=tx)

        assert (await queue.counts())["waiting"] == SESSIONS * 8


async def test_an_isolation_that_cannot_be_set_through_a_pooler_is_refused(
    server: DatabaseProcess, open_store: OpenStore
):
    server.execute("ALTER ROLE postgres SET default_transaction_isolation = 'serializable'")
    await add(open_store(server.url()), new_job("a"))

    async with pooled(server) as pooler:
        with pytest.raises(StoreRefused, match="default_transaction_isolation"):
            await open_store(pooler.url()).open()
