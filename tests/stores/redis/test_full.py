"""A server whose memory is full: nothing is added, and whatever makes room goes on."""

from __future__ import annotations

import asyncio

import pytest

from ropeway import Queue, Worker
from ropeway.errors import StoreFull
from ropeway.job.outcomes import Outcome
from ropeway.job.record import JobRecord
from ropeway.store.values import Answer, JobUpdate, Lock, StallRules
from ropeway.stores.redis import RedisStore
from ropeway.testing.arrange import add, claim, entries, read
from ropeway.testing.factories import LOCK, QUEUE, new_job
from tests.patience import PATIENCE

from .conftest import OpenStore, StartServer


@pytest.fixture
async def store(start_server: StartServer, open_store: OpenStore) -> RedisStore:
    return open_store(start_server().url())


async def fill(store: RedisStore) -> None:
    await store._executor.execute("CONFIG", "SET", "maxmemory", "1")
    with pytest.raises(StoreFull, match="memory is full"):
        await store.add([[new_job("one-too-many")]])


async def started(store: RedisStore) -> JobRecord:
    await add(store, new_job("job"))
    [job] = await claim(store)
    return job


async def test_a_lock_is_renewed(store: RedisStore):
    job = await started(store)
    await fill(store)
    [answer] = await store.renew(QUEUE, [Lock(job.id, str(job.token))], 10 * LOCK)
    assert answer.verdict == "done"
    assert (await read(store, job.id)).lock_until != job.lock_until


async def test_a_job_is_claimed_and_settled(store: RedisStore):
    await add(store, new_job("job"))
    await fill(store)
    [job] = await claim(store)
    settled = await store.settle(QUEUE, [Outcome(job.id, str(job.token), "complete", '"done"')])
    assert [answer.verdict for answer in settled.answers] == ["done"]


async def test_what_stalled_is_recovered(store: RedisStore):
    job = await started(store)
    await fill(store)
    ticked = await store.tick(QUEUE, StallRules(), now=job.lock_until)
    assert ticked.stalled == [job.id]


async def test_jobs_are_cancelled_and_removed(store: RedisStore):
    job = await started(store)
    await fill(store)
    assert [answer.verdict for answer in await store.cancel(QUEUE, [job.id])] == ["done"]
    assert [answer.verdict for answer in await store.remove(QUEUE, [job.id])] == ["done"]


async def test_logs_are_cleared_and_events_trimmed(store: RedisStore):
    job = await started(store)
    await store.update(QUEUE, [JobUpdate(job.id, log=("one", "two", "three"))])
    await fill(store)

    assert await store.clear_log(QUEUE, job.id, keep=1) == Answer("done", "active")
    await store.trim_events(QUEUE)

    page = await store.log(QUEUE, job.id)
    assert page is not None
    assert ([line.text for line in page.lines], page.newest) == (["three"], 3)
    assert [entry.what for entry in await entries(store)] == ["claim"]


async def test_nothing_is_published(store: RedisStore):
    await started(store)
    await fill(store)

    with pytest.raises(StoreFull, match="memory is full"):
        await store.publish(QUEUE, "imported", "{}")

    assert await entries(store, "published") == []


async def add_until_full(queue: Queue) -> int:
    added = 0
    while True:
        try:
            added += len(await queue.add_many([("send", "x" * 1_000)] * 100))
        except StoreFull:
            return added


async def test_workers_start_and_catch_up_and_then_there_is_room_again(start_server: StartServer):
    url = start_server("--maxmemory", "8mb").url()
    done = 0

    async def handle(_: object) -> None:
        nonlocal done
        done += 1

    async with Queue("letters", url, remove_on_complete=True) as queue:
        added = await add_until_full(queue)
        assert added > 0
        async with Worker(queue, handle, concurrency=100), asyncio.timeout(PATIENCE):
            while (await queue.counts())["waiting"]:  # noqa: ASYNC110 - its events are beside the point
                await asyncio.sleep(0.01)
        assert done == added
        await queue.add("send", "x" * 1_000)
