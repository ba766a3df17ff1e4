"""Firing schedules at an instant of the test's choice, as workers do."""

from __future__ import annotations

from ropeway import Queue
from ropeway.job.instants import Instant, instant_of
from ropeway.store.values import StallRules
from ropeway.worker.maintenance.firing import fire_schedules


async def tick(queue: Queue, at: Instant) -> None:
    """Fires whatever is due at an instant."""
    ticked = await queue.store.tick(queue.name, StallRules(), now=at)
    await fire_schedules(queue.store, queue.name, ticked.schedules, at)


async def fire_next(queue: Queue, id: str, *, late: int = 0) -> Instant:
    """Fires the next tick of a schedule, so many milliseconds late; answers its instant."""
    schedule = await queue.schedules.get(id)
    assert schedule is not None
    assert schedule.next_at is not None
    due = instant_of(schedule.next_at)
    await tick(queue, due + late)
    return due
