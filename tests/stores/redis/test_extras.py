"""Rarely used fields, in a hash beside the jobs."""

from __future__ import annotations

import asyncio

import pytest

from ropeway.job.retention import Retention
from ropeway.store.values import StallRules
from ropeway.stores.redis import RedisStore
from ropeway.testing.arrange import add, claim, read
from ropeway.testing.conformance.waiting_claims import waiting_request
from ropeway.testing.factories import LOCK, NOW, QUEUE, complete, new_job
from tests.patience import PATIENCE

from .test_parked import until_parked


async def extras_in(store: RedisStore) -> int:
    return int(await store._executor.execute("HLEN", f"{store._executor.keys.queue(QUEUE)}:extras"))


async def test_a_plain_job_has_none(store: RedisStore):
    await add(store, new_job("a"))
    await add(store, new_job("b", priority=1), new_job("c", delay=1_000))

    assert await extras_in(store) == 0


@pytest.mark.parametrize("number", [1, 2])
async def test_a_parked_claim_is_given_them(store: RedisStore, number: int):
    await add(store, new_job("first"))
    await store.remove(QUEUE, ["first"])
    waiting = asyncio.create_task(store.claim(waiting_request(number)))
    await until_parked(store)

    await add(store, *(new_job(f"job-{n}", tags=("x", str(n))) for n in range(number)))

    async with asyncio.timeout(PATIENCE):
        claimed = await waiting
    assert claimed.jobs == [await read(store, f"job-{n}") for n in range(number)]
    assert [job.tags for job in claimed.jobs] == [("x", str(n)) for n in range(number)]


async def test_a_stall_and_a_reset_keep_them(store: RedisStore):
    await add(store, new_job("a", tags=("x",)))
    await claim(store)
    await store.tick(QUEUE, StallRules(max_stalled_count=1), now=NOW + LOCK)
    stalled = await read(store, "a")
    await claim(store)
    await store.tick(QUEUE, StallRules(max_stalled_count=1), now=NOW + LOCK)
    given_up = await read(store, "a")
    await store.retry(QUEUE, ["a"], reset=True, now=NOW)
    again = await read(store, "a")

    assert [(job.state, job.stalled_count) for job in (stalled, given_up, again)] == [
        ("waiting", 1),
        ("failed", 2),
        ("waiting", 0),
    ]
    assert {job.tags for job in (stalled, given_up, again)} == {("x",)}


async def test_they_go_with_the_job(store: RedisStore):
    await add(store, *(new_job(str(n), tags=("x",)) for n in range(5)))
    [first] = await claim(store)

    await store.settle(QUEUE, [complete(first, keep=Retention(0, None))], now=NOW)
    await store.remove(QUEUE, ["1"], now=NOW)
    await store.clean(QUEUE, "waiting", older_than=0, limit=2, now=NOW)
    assert await extras_in(store) == 1
    await store.obliterate(QUEUE, now=NOW)

    assert await extras_in(store) == 0
