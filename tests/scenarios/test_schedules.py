"""Schedules while workers are killed."""

from __future__ import annotations

from collections import Counter

import pytest

from ropeway import Queue
from ropeway.job.instants import instant_of
from ropeway.job.schedules import tick_id

from .chronicle import check_counters
from .harness import Fleet, until

SECOND = 1_000


@pytest.mark.every_store
async def test_ticks_go_on_one_job_each_while_workers_are_killed_between_them(queue: Queue, fleet: Fleet):
    doomed, *others = await fleet.start_many(2, lock_duration=0.5)
    made = await queue.schedule("pulse", "touch", every=1, limit=5, missed="all")
    assert made.next_at is not None
    first = instant_of(made.next_at)
    ids = [tick_id("pulse", first + number * SECOND) for number in range(5)]
    await until(lambda: _has_completed(queue, ids[0]), "the first tick")
    doomed.kill()
    fleet.start(lock_duration=0.5)
    await until(lambda: _has_completed(queue, ids[1]), "the second tick")
    others[0].kill()
    await until(lambda: _has_completed(queue, ids[4]), "the last tick")

    assert Counter(line.job for line in fleet.lines("start")) == dict.fromkeys(ids, 1)
    schedule = await queue.schedules.get("pulse")
    assert schedule is not None
    assert (schedule.fired, schedule.next_at) == (5, None)
    assert [tick.job for tick in schedule.history] == ids
    await check_counters(queue)


async def test_ticks_that_nobody_was_there_for_make_one_job(queue: Queue, fleet: Fleet):
    worker = await fleet.start().ready()
    await queue.schedule("pulse", "touch", every=1)
    await until(lambda: _has_worked(queue), "the first tick")
    worker.kill()
    before = len(fleet.lines("start"))
    schedule = await queue.schedules.get("pulse")
    assert schedule is not None
    assert schedule.next_at is not None
    due = instant_of(schedule.next_at)
    await until(lambda: _has_passed(queue, due + 2 * SECOND), "two seconds without a worker")
    await fleet.start().ready()
    await until(lambda: len(fleet.lines("end")) > before, "the tick that was missed")
    await queue.schedules.remove("pulse")

    late = fleet.lines("start")[before]
    assert int(late.job.rpartition(":")[2]) >= due + 2 * SECOND
    assert set(Counter(line.job for line in fleet.lines("start")).values()) == {1}


async def _has_completed(queue: Queue, id: str) -> bool:
    job = await queue.get(id)
    return job is not None and job.snapshot.state == "completed"


async def _has_worked(queue: Queue) -> bool:
    counts = await queue.counts()
    return counts["completed"] > 0 and counts["active"] == 0


async def _has_passed(queue: Queue, instant: int) -> bool:
    return await queue.store.clock() >= instant
