"""Many workers at once."""

from __future__ import annotations

import pytest

from ropeway import JobHandle, Queue
from tests.patience import PATIENCE

from .chronicle import Chronicle, check_counters
from .harness import Fleet, until

pytestmark = pytest.mark.every_store


@pytest.mark.parametrize("number", [10, pytest.param(20, marks=pytest.mark.deep)])
async def test_workers_that_all_start_on_a_new_store_make_it_once_and_share_the_work(
    queue: Queue, fleet: Fleet, chronicle: Chronicle, number: int
):
    workers = await fleet.start_many(number, concurrency=2)
    jobs: list[JobHandle] = []

    async def each_has_worked() -> bool:
        """While there are jobs for all: some may still be about to connect when others have done many."""
        if (await queue.counts())["waiting"] < 2 * number:
            jobs.extend(await queue.add_many([("nap", 0.05)] * 5 * number))
        return all(worker.wrote("end") for worker in workers)

    await until(each_has_worked, "work for every worker")
    for job in jobs:
        await job.result(timeout=PATIENCE)
    starts = [line.job for line in fleet.lines("start")]
    assert sorted(starts) == sorted(job.id for job in jobs)
    assert set((await chronicle.read()).completions.values()) == {1}
    assert len({worker.id for worker in await queue.workers()}) == number
    assert [error for worker in workers for error in worker.errors] == []
    await check_counters(queue)
