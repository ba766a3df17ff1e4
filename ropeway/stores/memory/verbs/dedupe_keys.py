"""Freeing dedupe keys when the jobs that hold them end or are removed."""

from __future__ import annotations

from msgspec.structs import replace

from ....job.record import JobRecord
from ....job.states import FINAL
from ....store.values import KeyHolder
from ..step import Step
from .storing import promote_one


def free_key(step: Step, job: JobRecord, key: str) -> None:
    """Frees the key of a job that has ended, or is removed, and lets the job that waits for it go on.

    A key that is held for a time stays, unless the job is removed before its end.
    """
    queue = step.queue(job.queue)
    hold = queue.held_keys.get(key)
    if hold is None:
        return
    if hold.next == job.id:
        queue.assign(queue.held_keys, key, replace(hold, next=None))
    elif hold.id == job.id and (hold.until is None or job.state not in FINAL):
        queue.assign(queue.held_keys, key, None if hold.next is None else KeyHolder(hold.next))
        start_next(step, job.queue, hold)


def start_next(step: Step, name: str, hold: KeyHolder) -> None:
    """Promotes the job that waits for the end of the holder, if there is one."""
    queue = step.queue(name)
    successor = None if hold.next is None else queue.jobs.get(hold.next)
    if successor is not None and successor.state == "delayed":
        queue.separate(successor.id)
        promote_one(step, successor)
