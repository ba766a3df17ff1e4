"""Freeing dedupe keys when the jobs that hold them end or are removed."""

from __future__ import annotations

from msgspec.structs import replace

from ....job.record import JobRecord
from ....job.states import FINAL
from ....store.values import KeyHolder
from ..step import Step
from .storing import promote_one


def free_key(step: Step, job: JobRecord, key: str) -> None:
    """Frees the key of a job that has ended, or is removed; `conclude` lets the job that waits for it go on.

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
        if hold.next is not None:
            step.followers.append((job.queue, hold.next))


def start_followers(step: Step) -> None:
    """Promotes jobs that waited for the end of others, if they are still delayed."""
    followers, step.followers = step.followers, []
    for name, id in followers:
        start_follower(step, name, id)


def start_follower(step: Step, name: str, id: str | None) -> None:
    queue = step.queue(name)
    follower = None if id is None else queue.jobs.get(id)
    if follower is not None and follower.state == "delayed":
        queue.separate(follower.id)
        promote_one(step, follower)
