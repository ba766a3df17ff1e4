from __future__ import annotations

from msgspec.structs import replace

from ....job.instants import LAST_INSTANT
from ....job.numbers import whole
from ....job.record import JobRecord
from ....store.commands import Claim, Withdraw
from ....store.values import BATCH, Claimed
from ....store.waiting import end_wait, held_by
from ..keys import Key
from ..queue_data import QueueData
from ..step import Step
from .ending import conclude
from .expiry import expire_due


def claim(step: Step, request: Claim) -> Claimed:
    whole("lock", request.lock, 0, LAST_INSTANT)
    whole("limit", request.limit, 0, LAST_INSTANT)
    queue = step.queue(request.queue)
    jobs = _held(queue, request.token) if request.repeat else []
    if not jobs:
        promoted = promote_due(step, queue)
        expired = expire_due(step, queue)
        conclude(step)
        # If there may be more that expired, nothing is started.
        jobs = _take(step, queue, request) if expired < BATCH else []
        if promoted > len(jobs):
            step.wake(queue.name)
        if expired == BATCH:
            return Claimed([], step.now, step.now)
    due = queue.index("delayed").counted.least if len(jobs) < request.limit else None
    return Claimed(jobs, step.now, due[0] if due else None)


def withdraw(step: Step, command: Withdraw) -> Claimed:
    end_wait(command.token)
    return claim(step, held_by(command))


def promote_due(step: Step, queue: QueueData) -> int:
    """Promotes at most `BATCH` due jobs, in the order of their due times."""
    due = queue.index("delayed").counted.first(BATCH, before=(step.now + 1,))
    for _, _, id in due:
        job = queue.jobs[id]
        queue.put(replace(job, state="waiting", due_at=None))
        queue.entry("promote", "waiting").append((id, None))
    return len(due)


def mark_alone(queue: QueueData, job: JobRecord, *, alone: bool) -> None:
    """Marks a job as running alone, if it stalled before: for other jobs the mark is never read."""
    queue.afterwards(queue.set_alone, job.id, job.token if alone and job.stalled_count else None)


def _held(queue: QueueData, token: str) -> list[JobRecord]:
    active = (queue.jobs[id] for _, _, id in queue.index("active").keys)
    held = [job for job in active if job.token == token]
    return sorted(held, key=lambda job: (job.priority, job.order))


def _take(step: Step, queue: QueueData, request: Claim) -> list[JobRecord]:
    now, lock_until = step.now, min(step.now + request.lock, LAST_INSTANT)
    taken = []
    entries = queue.entry("claim", "active", {"worker": request.worker})
    for _, _, id in _next(queue, request):
        job = queue.jobs[id]
        claimed = replace(
            job,
            state="active",
            attempts_started=job.attempts_started + 1,
            due_at=None,
            token=request.token,
            worker=request.worker,
            started_at=now,
            renewed_at=now,
            lock_until=lock_until,
        )
        queue.put(claimed)
        if job.extras is not None:
            queue.deadlines.remove(id)
        if job.stalled_count and not request.isolates:
            mark_alone(queue, claimed, alone=True)
        entries.append((id, None))
        taken.append(claimed)
    return taken


def _next(queue: QueueData, request: Claim) -> list[Key]:
    settings, waiting, limit = queue.settings, queue.index("waiting"), request.limit
    if settings.paused:
        return []
    if settings.max_active is not None:
        limit = max(0, min(limit, settings.max_active - len(queue.index("active"))))
    if not settings.paused_names and request.names is None:
        return waiting.counted.first(limit)
    paused, names = frozenset(settings.paused_names), request.names
    wanted = None if names is None else frozenset(names)
    return waiting.first_named(lambda name: name not in paused and (wanted is None or name in wanted), wanted, limit)
