"""Many delays that end at the same moment."""

from __future__ import annotations

import time
from collections import Counter

import pytest

from ropeway import Queue
from ropeway.testing.factories import NOW, SECOND, new_jobs
from tests.patience import PATIENCE

from .chronicle import check_counters
from .harness import Fleet, Gate, show, until

pytestmark = pytest.mark.every_store

JOBS = 20_000


async def test_jobs_that_are_all_due_at_once_run_while_locks_are_renewed(queue: Queue, fleet: Fleet, gate: Gate):
    # Long ago, so that all are due when the first worker looks, however long it takes to add them.
    for _ in range(JOBS // 1_000):
        await queue.store.add([new_jobs(1_000, queue=queue.name, name="nap", data="0", delay=SECOND)], now=NOW)
    assert (await queue.counts())["delayed"] == JOBS
    held = await queue.add_many([("hold", str(gate), {"priority": -1}) for _ in range(4)])
    workers = await fleet.start_many(2, concurrency=50, lock_duration=1)
    began = time.monotonic()
    for job in held:
        await fleet.running_in(job.id)
    await until(lambda: _has_completed(queue, JOBS), "the end of all delayed jobs", timeout=PATIENCE)
    show("delayed jobs done per second", JOBS / (time.monotonic() - began))
    gate.open()
    for job in held:
        await job.result(timeout=PATIENCE)

    assert set(Counter(line.job for line in fleet.lines("start")).values()) == {1}
    assert await _has_completed(queue, JOBS + len(held))
    assert sum(minute.stalled for minute in await queue.metrics()) == 0
    assert [error for worker in workers for error in worker.errors] == []
    await check_counters(queue)


async def _has_completed(queue: Queue, number: int) -> bool:
    """By the metrics: retention has removed some of them, and the stream has trimmed their events."""
    return sum(minute.completed for minute in await queue.metrics()) == number
