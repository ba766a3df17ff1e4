"""What was removed is gone: nothing grows with the number of jobs that ever were."""

from __future__ import annotations

from ropeway.job.events import EVENTS_KEPT
from ropeway.job.retention import NOT_AT_ALL
from ropeway.job.states import STATES
from ropeway.store.values import JobUpdate, Record, StallRules
from ropeway.stores.memory import MemoryStore
from ropeway.testing.arrange import add, claim
from ropeway.testing.factories import (
    DAY,
    MINUTE,
    NOW,
    QUEUE,
    SECOND,
    claim_request,
    complete,
    fail,
    lock_of,
    new_job,
    new_jobs,
)

from .audit import queue_data


def kept_keys(store: MemoryStore) -> int:
    """All the places that the queue's jobs take in any order."""
    queue = queue_data(store, QUEUE)
    orders = [queue.locks, queue.expiries, *(queue.index(state).counted for state in STATES)]
    return sum(len(block) for keys in orders for block in keys._blocks)


def extra_orders(store: MemoryStore) -> list[object]:
    """Those that the waiting jobs are kept in only if somebody asked."""
    index = queue_data(store, QUEUE).index("waiting")
    return [index._by_name, index._by_age]


async def test_cancelled_jobs_leave_the_line(store: MemoryStore):
    jobs = new_jobs(5_000)
    await store.add([jobs], now=NOW)
    await store.cancel(QUEUE, [job.id for job in jobs[::-1]], now=NOW)

    assert queue_data(store, QUEUE).index("waiting").counted._blocks == []


async def test_removed_jobs_leave_nothing(store: MemoryStore):
    jobs = new_jobs(3_000, delay=DAY)
    await store.add([jobs], now=NOW)
    await store.promote(QUEUE, [job.id for job in jobs[::2]], now=NOW)
    await store.update(QUEUE, [JobUpdate(job.id, log=("a line",)) for job in jobs], now=NOW)
    held = await claim(store, 1_000)
    await store.settle(QUEUE, [fail(job) for job in held], now=NOW)

    await store.remove(QUEUE, [job.id for job in jobs], now=NOW)

    queue = queue_data(store, QUEUE)
    assert (kept_keys(store), len(queue.jobs), len(queue.histories)) == (0, 0, 0)


async def test_renewing_a_lock_keeps_no_old_one(store: MemoryStore):
    await store.add([new_jobs(10)], now=NOW)
    jobs = await claim(store, 10)
    for after in range(100):
        await store.renew(QUEUE, [lock_of(job) for job in jobs], MINUTE, now=NOW + after)

    assert len(queue_data(store, QUEUE).locks) == 10


async def test_a_long_run_with_retention_keeps_what_it_says(store: MemoryStore):
    for round_ in range(50):
        await store.add([new_jobs(100)], now=NOW + round_)
        jobs = await claim(store, 100, now=NOW + round_)
        await store.settle(QUEUE, [complete(job, keep=NOT_AT_ALL) for job in jobs], now=NOW + round_)

    assert kept_keys(store) == 0


async def test_events_stay_bounded_although_nobody_ticks(store: MemoryStore):
    for _ in range(60):
        await store.add([new_jobs(1_000)], now=NOW)

    page = await store.events(QUEUE, limit=100_000)
    events = sum(2 * len(stored.entry.jobs) for stored in page.entries)
    assert EVENTS_KEPT <= events <= 2 * EVENTS_KEPT


async def test_cursors_of_another_store_are_gaps(store: MemoryStore):
    other = MemoryStore.from_url("memory://")
    await add(other, new_job())
    foreign = (await other.events(QUEUE)).cursor
    await add(store, new_job("a"))

    page = await store.events(QUEUE, foreign)

    assert page.gap
    assert [job[0] for stored in page.entries for job in stored.entry.jobs] == ["a"]


async def test_a_cursor_from_before_an_obliteration_skips_nothing_of_the_new_queue(store: MemoryStore):
    await add(store, new_job("a"))
    await add(store, new_job("b"))
    before = (await store.events(QUEUE)).entries[0].id
    await store.obliterate(QUEUE, now=NOW)
    for id in ("c", "d", "e"):
        await add(store, new_job(id))

    page = await store.events(QUEUE, before)

    assert page.gap
    assert [job[0] for stored in page.entries for job in stored.entry.jobs] == ["c", "d", "e"]


async def test_looking_at_queues_that_do_not_exist_makes_none(store: MemoryStore):
    await store.claim(claim_request(queue="nowhere"), now=NOW)
    await store.cancel("nowhere", ["a"], now=NOW)
    await store.events("nowhere")
    await store.tick("nowhere", StallRules(), now=NOW)
    await store.obliterate("nowhere", now=NOW)

    assert store._shared is not None
    assert store._shared.queues == {}


async def test_expired_records_and_old_revocations_go_with_a_tick(store: MemoryStore):
    for number in range(20):
        await store.remember(Record("presence", str(number), "{}"), lasting=SECOND, now=NOW)
    await add(store, new_job("a"))
    await claim(store)
    await store.cancel(QUEUE, ["a"], now=NOW)

    await store.tick(QUEUE, StallRules(), now=NOW + 2 * MINUTE)

    assert store._shared is not None
    assert store._shared.records._kinds == {}
    assert len(store._shared.revoked) == 0


async def test_orders_that_were_asked_for_once_are_forgotten_with_the_last_job(store: MemoryStore):
    await store.add([[*new_jobs(100, name="other"), new_job()]], now=NOW)
    await claim(store, names=("send",))
    await store.clean(QUEUE, "waiting", limit=1, now=NOW + SECOND)
    assert None not in extra_orders(store)

    await claim(store, 100)

    assert extra_orders(store) == [None, None]
