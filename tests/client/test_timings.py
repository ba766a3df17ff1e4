"""How long jobs waited and ran, as workers have written it down."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from ropeway import Flow, Job, Queue, Worker
from ropeway.client.timings import HOUR, KIND, add_timings, read_timings
from ropeway.job.timings import Timings
from ropeway.store.values import Record


def observed(*durations: float) -> Timings:
    timings = Timings()
    for duration in durations:
        timings.run.observe(duration)
    return timings


@pytest.mark.every_store
async def test_a_worker_writes_what_its_jobs_took_when_it_ends(queue: Queue):
    async with Worker(queue, lambda _: "done"):
        jobs = [await queue.add("send") for _ in range(3)]
        for job in jobs:
            await job.result(timeout=60)

    written = await queue.timings()

    assert sum(each.timings.run.number for each in written) == 3
    assert sum(each.timings.wait.number for each in written) == 3
    assert await queue.timings(since=datetime.now(UTC) + timedelta(hours=1)) == []


async def test_the_wait_of_a_delayed_job_begins_with_its_time(queue: Queue):
    async def handle(job: Job) -> None:
        if job.attempt == 1 and job.name == "retried":
            raise ValueError

    async with Worker(queue, handle):
        jobs = [
            await queue.add("delayed", delay=0.2),
            await queue.add("retried", attempts=2),
            await queue.add("until", delay=datetime.now(UTC)),
            await queue.add_flow(Flow("parent", children=[Flow("child")])),
        ]
        for job in jobs:
            await job.result(timeout=60)

    written = await queue.timings()

    # Not of the retry, of what waited for an instant, and of the parent.
    assert sum(each.timings.wait.number for each in written) == 3
    assert sum(each.timings.run.number for each in written) == 6


@pytest.mark.every_store
async def test_what_many_workers_write_at_once_adds_up(queue: Queue):
    await asyncio.gather(*(add_timings(queue.store, queue.name, observed(5, 100)) for _ in range(5)))
    assert sum(each.timings.run.number for each in await queue.timings()) == 10


async def test_timings_are_read_from_the_given_minute_on(queue: Queue):
    now = await queue.store.clock()
    earlier = Record(KIND, f"{queue.name}:{now - now % HOUR - HOUR}", '{"59": {"run": [[1], 3]}}')
    await queue.store.remember(earlier)
    await add_timings(queue.store, queue.name, observed(1))
    assert len(await read_timings(queue.store, queue.name, 0)) == 2
    assert len(await read_timings(queue.store, queue.name, now)) == 1


async def test_a_damaged_record_is_replaced(queue: Queue):
    now = await queue.store.clock()
    await queue.store.remember(Record(KIND, f"{queue.name}:{now - now % HOUR}", '"nonsense"'))
    assert await queue.timings() == []
    await add_timings(queue.store, queue.name, observed(1))
    assert len(await queue.timings()) == 1
