"""A server whose clock is set back: to a queue it is as if its newest entry were of a later time."""

from __future__ import annotations

import pytest

from ropeway.store.values import StallRules
from ropeway.stores.redis import RedisStore
from ropeway.testing.arrange import add, claim, read
from ropeway.testing.factories import QUEUE, new_job
from tests.stores.waiting import until

HOUR = 3_600_000


@pytest.fixture
async def later(store: RedisStore) -> int:
    return await store.clock() + HOUR


async def test_time_goes_on_in_a_quiet_queue(store: RedisStore, later: int):
    await add(store, new_job("a", delay=50), now=later)
    before = (await store.tick(QUEUE, StallRules())).now

    async def is_promoted() -> bool:
        return (await store.tick(QUEUE, StallRules())).promoted == 1

    await until(is_promoted)

    assert later <= before < (await store.tick(QUEUE, StallRules())).now < later + HOUR


async def test_a_lock_of_before_runs_out(store: RedisStore, later: int):
    await add(store, new_job("a"), now=later)
    await claim(store, lock=50, now=later)

    async def has_stalled() -> bool:
        return (await store.tick(QUEUE, StallRules())).stalled == ["a"]

    await until(has_stalled)

    assert (await read(store, "a")).state == "waiting"


async def test_jobs_added_alone_and_in_bundles_follow_each_other(store: RedisStore, later: int):
    await add(store, new_job("a"), now=later)

    for bundle in ([new_job("b")], [new_job("c"), new_job("d")], [new_job("e")]):
        await store.add([bundle])

    created = [(await read(store, id)).created_at for id in "abcde"]
    assert created == sorted(created)
    assert created[-1] < later + HOUR
    assert [job.id for job in (await claim(store, 5, now=later))] == [*"abcde"]
