"""Dedupe keys: what an add does if another job holds its key."""

from __future__ import annotations

from msgspec.structs import replace

from ....job.dedupe import ACTIONS, SUPERSEDED, DedupeRule
from ....job.instants import Instant
from ....job.record import JobRecord, NewJob
from ....store.commands import ReadDedupe, ReleaseDedupe
from ....store.values import BATCH, KeyHolder
from ..queue_data import QueueData
from ..step import Step
from .dedupe_keys import start_follower, start_followers
from .ending import end, keep_of_failed, revoke


def take_key(step: Step, job: NewJob, rule: DedupeRule) -> str | None:
    """Takes the key for a job, or the place behind the job that holds it (`follows`), and returns None.

    Otherwise returns the id of the job that is found instead.
    """
    # The holder may be one that goes on because another has ended in this step.
    start_followers(step)
    queue = step.queue(job.queue)
    hold = queue.held_keys.get(rule.key)
    if hold is not None and not hold.is_over(step.now):
        holder = queue.jobs.get(hold.id)
        action = ACTIONS[rule.mode]["completed" if holder is None else holder.state]
        if action == "follow":
            return _follow(step, job, rule.key, hold)
        if action in ("find", "refresh", "postpone"):
            if action != "find":
                _refresh(step, hold.id, job, step.now + rule.ttl if action == "postpone" else None)
            return hold.id
        if action == "replace":
            # The follower first: it would be promoted when the holder ends.
            for id in filter(None, (hold.next, hold.id)):
                _supersede(step, queue.jobs[id], job.id)
        else:
            # The key passes to the new job, so nothing else would let the follower go on.
            start_follower(step, job.queue, hold.next)
    queue.assign(queue.held_keys, rule.key, KeyHolder(job.id, rule.held_until(step.now)))
    return None


def follows(step: Step, job: NewJob, rule: DedupeRule) -> bool:
    """True if the job has to wait for the end of the one that holds its key."""
    return step.queue(job.queue).held_keys[rule.key].next == job.id


def dedupe(step: Step, command: ReadDedupe) -> KeyHolder | None:
    hold = step.shared.queue(command.queue).held_keys.get(command.key)
    return None if hold is None or hold.is_over(step.now) else hold


def release_dedupe(step: Step, command: ReleaseDedupe) -> bool:
    queue = step.queue(command.queue)
    hold = queue.held_keys.get(command.key)
    if hold is None:
        return False
    queue.assign(queue.held_keys, command.key, None)
    start_follower(step, command.queue, hold.next)
    return not hold.is_over(step.now)


def free_old_keys(step: Step, queue: QueueData) -> None:
    """Frees keys whose time is over."""
    over = [key for key, hold in queue.held_keys.items() if hold.is_over(step.now)]
    for key in over[:BATCH]:
        queue.assign(queue.held_keys, key, None)


def _follow(step: Step, job: NewJob, key: str, hold: KeyHolder) -> str | None:
    """Puts the job behind the one that holds the key; or gives its data to the one that is there, and returns its id.

    The key then passes on at the end of its holder, also if it was held for a time: else nothing would start the job.
    """
    queue = step.queue(job.queue)
    if hold.next is None:
        holder = hold.id
    elif queue.jobs[hold.next].state == "active":
        # It was promoted by hand: the new job waits for its end instead.
        holder = hold.next
    else:
        _refresh(step, hold.next, job)
        return hold.next
    queue.assign(queue.held_keys, key, KeyHolder(holder, next=job.id))
    return None


def _refresh(step: Step, id: str, job: NewJob, due_at: Instant | None = None) -> None:
    """Gives the data of a discarded job to one that is there, if that has the same name and is not active."""
    queue = step.queue(job.queue)
    there = queue.jobs[id]
    data = job.data if there.name == job.name and there.state != "active" else there.data
    queue.put(replace(there, data=data, due_at=there.due_at if due_at is None else due_at))


def _supersede(step: Step, job: JobRecord, by: str) -> None:
    reason = SUPERSEDED + by
    step.queue(job.queue).separate(job.id)
    revoke(step, job, "cancelled")
    detail = {"prev": job.state, "reason": reason}
    end(step, job, "cancel", "cancelled", keep_of_failed(job), detail=detail, token=None, reason=reason)
