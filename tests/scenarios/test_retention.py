"""Callbacks of retention outlive the workers that make them."""

from __future__ import annotations

from ropeway import Queue
from ropeway.job.stages import callback_queue

from .harness import Fleet, until

JOBS = 150
"""More than one step deletes."""


async def test_every_callback_is_called_though_the_worker_is_killed_amid_them(queue: Queue, fleet: Fleet):
    await queue.set_retention(stale_after=0.001, delete_after=0.002)
    orders = {"callbacks": True}
    first = fleet.start(orders=orders, lock_duration=1, stalled_interval=0.2)
    jobs = await queue.add_many([("nap", 0)] * JOBS)
    await until(lambda: len(first.wrote("deleted")) >= 20, "the first callbacks")
    first.kill()

    fleet.start(orders=orders, lock_duration=1, stalled_interval=0.2)
    callbacks = Queue(callback_queue(queue.name, "deleted"), store=queue.store)

    async def completed() -> int:
        return sum(minute.completed for minute in await callbacks.metrics())

    async def are_done() -> bool:
        return await completed() == JOBS

    await until(are_done, "the end of every callback")
    noted = [line.note for line in fleet.lines("deleted")]
    assert {*noted} == {job.id for job in jobs}
    assert len(noted) <= JOBS + 10, "only those under way were called again"
    assert (await queue.counts())["completed"] == 0
