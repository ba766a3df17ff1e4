"""Storing one new job."""

from __future__ import annotations

from msgspec.structs import replace

from ....job.instants import LAST_INSTANT, Instant
from ....job.record import JobRecord, NewJob
from ....job.states import State
from ..families import Family
from ..step import Step


def store(step: Step, job: NewJob) -> None:
    queue, now = step.queue(job.queue), step.now
    # One of this id may have been removed in this step.
    queue.separate(job.id)
    if job.children:
        _store_parent(step, job)
        return
    due_at = min(now + job.delay, LAST_INSTANT) if job.delay else job.due_at
    is_delayed = due_at is not None and due_at > now
    record = _record(step, job, "delayed" if is_delayed else "waiting", due_at if is_delayed else None)
    queue.put(record)
    detail = {"name": job.name, "due_at": due_at} if is_delayed else {"name": job.name}
    queue.entry("add", record.state).append((job.id, detail))
    step.wake(job.queue)


def promote_one(step: Step, job: JobRecord) -> None:
    """Makes a delayed job wait in line now; leaves others as they are."""
    if job.state == "delayed":
        queue = step.queue(job.queue)
        queue.put(replace(job, state="waiting", due_at=None))
        queue.entry("promote", "waiting").append((job.id, None))
        step.wake(job.queue)


def _store_parent(step: Step, job: NewJob) -> None:
    """Its delay begins when its children have ended."""
    queue = step.queue(job.queue)
    family = Family({}, delay=job.delay, due_at=job.due_at)
    family.add(job.children)
    queue.found(job.id, family)
    queue.put(_record(step, job, "waiting-children"))
    queue.entry("add", "waiting-children").append((job.id, {"name": job.name}))


def _record(step: Step, job: NewJob, state: State, due_at: Instant | None = None) -> JobRecord:
    number = next(step.shared.sequence)
    if job.extras is not None and (deadline := job.extras.deadline(step.now)) is not None:
        step.queue(job.queue).deadlines.add(job.id, deadline, number)
    return JobRecord(
        job.queue,
        job.id,
        job.name,
        job.data,
        job.options,
        state,
        job.priority,
        -number if job.lifo else number,
        step.now,
        due_at=due_at,
        tags=job.tags,
        parents=job.parents,
        children=len(job.children),
        extras=job.extras,
    )
