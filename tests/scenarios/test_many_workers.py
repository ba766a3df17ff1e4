"""Many workers at once."""

from __future__ import annotations

from ropeway import Queue

from .chronicle import Chronicle, check_counters
from .harness import Fleet, until

WORKERS = 20


async def test_workers_that_all_start_on_a_new_store_make_it_once_and_share_the_work(
    queue: Queue, fleet: Fleet, chronicle: Chronicle
):
    workers = await fleet.start_many(WORKERS, concurrency=2)
    # While each has jobs enough to be busy: none is left out.
    jobs = await queue.add_many([("nap", 0.05) for _ in range(WORKERS * 30)])
    await until(lambda: all(worker.wrote("end") for worker in workers), "work for every worker")
    for job in jobs:
        await job.result(timeout=30)
    starts = [line.job for line in fleet.lines("start")]
    assert sorted(starts) == sorted(job.id for job in jobs)
    assert set((await chronicle.read()).completions.values()) == {1}
    assert len({worker.id for worker in await queue.workers()}) == WORKERS
    assert [error for worker in workers for error in worker.errors] == []
    await check_counters(queue)
