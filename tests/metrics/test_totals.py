"""Counters that never decrease, whoever reads and whatever the store forgets."""

from __future__ import annotations

import pytest

from ropeway import Queue
from ropeway.client.timings import HOUR, MINUTE, add_timings
from ropeway.errors import StoreUnavailable
from ropeway.job.timings import Timings
from ropeway.metrics.totals import KIND, Totals
from ropeway.store.contract import Store
from ropeway.store.values import Record
from ropeway.testing.factories import new_job
from tests.client.tampering import Tampering

DAY = 24 * HOUR


async def added(store: Store, queue: Queue, number: int, at: int) -> None:
    await store.add([[new_job(queue=queue.name)] for _ in range(number)], now=at)


async def totals_of(store: Store, queue: Queue) -> Totals:
    """Those of a process that starts."""
    found = await store.recall(KIND, queue.name)
    return Totals(store, queue.name, found[0] if found else None)


@pytest.mark.every_store
async def test_totals_go_on_where_another_process_ended_though_the_store_forgets(store: Store, queue: Queue):
    now = await store.clock()
    await added(store, queue, 3, now - 10 * DAY)
    await added(store, queue, 2, now)
    first = await totals_of(store, queue)
    timings = Timings()
    timings.run.observe(20)
    await add_timings(store, queue.name, timings)

    before = await first.read(now + MINUTE, lasting=True)
    await queue.obliterate(force=True)
    same = await first.read(now + 2 * MINUTE, lasting=True)
    after = await (await totals_of(store, queue)).read(now + 2 * MINUTE, lasting=True)

    assert (before.counts["added"], before.timings.run.number) == (5, 1)
    # What was added in the last hour is gone with the queue, unless it had been read.
    assert (same.counts["added"], same.timings.run.number) == (5, 1)
    assert (after.counts["added"], after.timings.run.number) == (3, 1)


async def test_a_minute_is_counted_once_however_often_it_is_read(store: Store, queue: Queue):
    now = await store.clock()
    totals = await totals_of(store, queue)
    seen = []
    for step in range(5):
        await added(store, queue, 2, now)
        seen.append((await totals.read(now + step * HOUR, lasting=True)).counts["added"])
    assert seen[:2] == [2, 4]
    assert seen == sorted(seen)
    assert (await (await totals_of(store, queue)).read(now + 5 * HOUR, lasting=True)).counts["added"] == seen[-1]


async def test_two_processes_that_settle_at_once_agree(store: Store, queue: Queue):
    now = await store.clock()
    await added(store, queue, 4, now - 3 * HOUR)
    one, other = await totals_of(store, queue), await totals_of(store, queue)
    for totals in (one, other, one):
        assert (await totals.read(now, lasting=True)).counts["added"] == 4
    assert (await other.read(now + 3 * HOUR, lasting=True)).counts["added"] == 4
    assert (await (await totals_of(store, queue)).read(now, lasting=True)).counts["added"] == 4


async def test_a_damaged_record_begins_again(store: Store, queue: Queue):
    await store.remember(Record(KIND, queue.name, '{"until": "never"}'))
    now = await store.clock()
    await added(store, queue, 1, now)
    assert (await (await totals_of(store, queue)).read(now, lasting=True)).counts["added"] == 1


async def test_a_store_that_may_not_be_written_is_read(tampered_queue: Queue, tampering: Tampering):
    def refuse(*_: object) -> None:
        raise StoreUnavailable("store", "this connection is for reading")

    store = tampered_queue.store
    now = await store.clock()
    await added(store, tampered_queue, 1, now)
    tampering.before["remember"] = refuse
    assert (await (await totals_of(store, tampered_queue)).read(now, lasting=True)).counts["added"] == 1


async def test_a_queue_that_is_gone_is_not_remembered(store: Store, queue: Queue):
    now = await store.clock()
    await (await totals_of(store, queue)).read(now, lasting=False)
    assert await store.recall(KIND) == []
