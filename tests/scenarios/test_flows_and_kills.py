"""Workers are killed while flows run: every parent is released once, after its children, and none is stuck."""

from __future__ import annotations

from itertools import groupby
from random import Random
from typing import Final

from ropeway import Queue
from ropeway.job.ids import new_id
from ropeway.job.record import NewJob
from ropeway.testing.factories import new_flow, new_job
from tests.patience import PATIENCE

from .chaos import Chaos
from .chronicle import Chronicle, all_jobs, check_counters
from .harness import Fleet, until

TOTALS: Final = "totals"
"""The queue of the roots: their children are in another one."""
KILLS: Final = 6
FLOWS: Final = 4
"""Added before each kill, so that there is work at any time."""
LEAVES: Final = 10
LOCK: Final = 3.0


def nap(queue: str) -> NewJob:
    return new_job(new_id(), queue=queue, name="nap", data="0.05", remove_on_complete=False)


def flow(queue: str) -> list[NewJob]:
    """A root over two parents, each with leaves of its own and one that both wait for."""
    root, left, right = new_flow(nap(TOTALS), nap(queue), nap(queue))
    left, shared, *left_leaves = new_flow(left, nap(queue), *(nap(queue) for _ in range(LEAVES)))
    right, shared, *right_leaves = new_flow(right, shared, *(nap(queue) for _ in range(LEAVES)))
    return [root, left, right, shared, *left_leaves, *right_leaves]


async def test_every_parent_is_released_once_and_none_is_stuck(queue: Queue, fleet: Fleet, chronicle: Chronicle):
    totals = Queue(TOTALS, store=queue.store)
    chronicles = {queue.name: chronicle, TOTALS: Chronicle(totals)}
    orders = {"more_queues": [TOTALS]}
    chaos = Chaos(
        fleet, queue, chronicle, Random(16), orders=orders, concurrency=8, lock_duration=LOCK, max_stalled_count=1_000
    )
    added: list[NewJob] = []
    await chaos.begin(2)
    for _ in range(KILLS):
        bundles = [flow(queue.name) for _ in range(FLOWS)]
        await queue.store.add(bundles)
        added += [job for bundle in bundles for job in bundle]
        await chaos.kill()

    async def all_completed() -> bool:
        return sum([await each.completed() for each in chronicles.values()]) == len(added)

    await until(all_completed, "the end of all jobs", timeout=PATIENCE)

    jobs = [*await all_jobs(queue), *await all_jobs(totals)]
    assert {job.id for job in jobs} == {job.id for job in added}
    assert {job.state for job in jobs} == {"completed"}
    parents = {job.id: job for job in added if job.children}
    released = [id for each in chronicles.values() for id in await each.ids("release")]
    assert sorted(released) == sorted(parents)
    for each in chronicles.values():
        assert set((await each.read()).completions.values()) == {1}
    await check_counters(queue)
    await check_counters(totals)
    for parent in parents.values():
        page = await queue.store.children(parent.queue, parent.id)
        assert page is not None
        assert page.counts == {"pending": 0, "completed": len(parent.children), "failed": 0, "cancelled": 0}

    begun = _first(fleet, "start")
    ended = _first(fleet, "end")
    assert [
        (parent.id, child.id)
        for parent in parents.values()
        for child in parent.children
        if begun[parent.id] < ended[child.id]
    ] == []


def _first(fleet: Fleet, what: str) -> dict[str, float]:
    """When each job's first line of a kind was written."""
    lines = sorted(fleet.lines(what), key=lambda line: line.job)
    return {job: min(line.at for line in own) for job, own in groupby(lines, key=lambda line: line.job)}
