"""A worker whose clock is wrong, among others on a busy queue."""

from __future__ import annotations

import pytest

from ropeway import JobHandle, Queue
from tests.patience import PATIENCE

from .chronicle import Chronicle, check_counters
from .harness import Fleet, Gate

HOUR = 3_600


async def test_a_worker_whose_clock_is_behind_changes_nothing(
    queue: Queue, fleet: Fleet, chronicle: Chronicle, gate: Gate
):
    jobs = await _run_beside(queue, fleet, gate, clock_shift=-HOUR)
    assert await chronicle.ids("stall") == []
    assert await chronicle.ids("lock-lost") == []
    assert sorted(line.job for line in fleet.lines("start")) == sorted(job.id for job in jobs)
    await check_counters(queue)


@pytest.mark.every_store
async def test_a_worker_whose_clock_is_ahead_costs_at_most_a_second_run(
    url: str, queue: Queue, fleet: Fleet, chronicle: Chronicle, gate: Gate
):
    """A store with a clock of its own does not care.

    One that takes the clocks of its processes goes by the latest: the locks of that moment then run out, once.
    """
    jobs = await _run_beside(queue, fleet, gate, clock_shift=HOUR)
    completions = (await chronicle.read()).completions
    assert completions == dict.fromkeys((job.id for job in jobs), 1)
    assert set(chronicle.count("stall").values()) <= ({1} if url.startswith("sqlite") else set())
    await check_counters(queue)


async def _run_beside(queue: Queue, fleet: Fleet, gate: Gate, clock_shift: float) -> list[JobHandle]:
    """Work for several lock durations, half of it begun before the wrong clock comes."""
    held = await queue.add_many([("hold", str(gate)) for _ in range(3)])
    naps = await queue.add_many([("nap", 0.05) for _ in range(225)])
    options = {"concurrency": 5, "lock_duration": 1, "max_stalled_count": 10}
    await fleet.start_many(2, **options)
    for job in held:
        await fleet.running_in(job.id)
    wrong = await fleet.start(orders={"clock_shift": clock_shift}, **options).ready()
    naps += await queue.add_many([("nap", 0.05) for _ in range(225)])
    for job in naps:
        await job.result(timeout=PATIENCE)
    gate.open()
    for job in held:
        await job.result(timeout=PATIENCE)
    assert wrong.wrote("end")
    return [*held, *naps]
