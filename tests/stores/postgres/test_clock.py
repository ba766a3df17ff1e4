"""A server whose clock is set back: to a queue it is as if what it has were of a later time."""

from __future__ import annotations

import pytest

from ropeway.job.retention import Retention
from ropeway.store.values import StallRules
from ropeway.stores.postgres import PostgresStore
from ropeway.testing.arrange import add, claim, read
from ropeway.testing.factories import NOW, QUEUE, complete, lock_of, new_job
from tests.stores.waiting import until

HOUR = 3_600_000
LOCK = 30_000
RULES = StallRules()


@pytest.fixture
async def later(store: PostgresStore) -> int:
    return await store.clock() + HOUR


async def test_a_lock_of_before_lasts_its_time_and_runs_out(store: PostgresStore, later: int):
    await add(store, new_job("a"), now=later)
    await claim(store, lock=50, now=later)

    async def has_stalled() -> bool:
        return (await store.tick(QUEUE, RULES)).stalled == ["a"]

    await until(has_stalled)

    assert (await read(store, "a")).state == "waiting"


async def test_a_worker_that_lives_keeps_its_lock(store: PostgresStore, later: int):
    await add(store, new_job("a"), now=later)
    [held] = await claim(store, lock=LOCK, now=later)

    ticked = await store.tick(QUEUE, RULES)

    assert ticked.stalled == []
    assert ticked.next_at == ticked.now + LOCK
    [answer] = await store.renew(QUEUE, [lock_of(held)], LOCK)
    assert answer.verdict == "done"
    assert ticked.next_at <= ((await read(store, "a")).lock_until or 0) < ticked.next_at + HOUR


async def test_a_lock_that_was_renewed_a_moment_ago_is_left_alone(store: PostgresStore):
    await add(store, new_job("a"))
    await claim(store, lock=LOCK)

    await store.tick(QUEUE, RULES, now=NOW - 1_000)

    assert (await read(store, "a")).lock_until == NOW + LOCK


async def test_nothing_is_lost(store: PostgresStore, later: int):
    """What waits is run in its order, what is delayed at its time, and what is finished stays."""
    await add(store, new_job("done"), now=later)
    [done] = await claim(store, now=later)
    await store.settle(QUEUE, [complete(done, keep=Retention(age=HOUR))], now=later)
    await add(store, new_job("a"), new_job("delayed", delay=1_000), now=later)

    now = later - HOUR
    await add(store, new_job("b"), now=now)
    ticked = await store.tick(QUEUE, RULES)
    held = await claim(store, 5, now=now)
    await store.settle(QUEUE, [complete(job) for job in held])

    assert (ticked.promoted, ticked.removed) == (0, 0)
    assert [job.id for job in held] == ["a", "b"]
    assert ticked.next_at == later + 1_000
    assert (await store.tick(QUEUE, RULES, now=later + 1_000)).promoted == 1
    assert [job.id for job in await claim(store, now=later + 1_000)] == ["delayed"]
    assert {state: number for state, number in (await store.count(QUEUE)).items() if number} == {
        "active": 1,
        "completed": 3,
    }
