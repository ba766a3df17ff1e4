"""Commands that operators and applications apply to jobs: cancel, retry, promote, remove."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from ....job.record import JobRecord
from ....job.states import FINAL
from ....store.commands import Cancel, Promote, Remove, Retry
from ....store.values import Answer, RevokedLock, Why
from ..queue_data import QueueData
from ..step import Step
from .answers import DONE, MISSING, REFUSED
from .ending import apply_retention, drop, end, keep_of_failed


def cancel(step: Step, command: Cancel) -> list[Answer]:
    queue, reason = step.queue(command.queue), command.reason
    common = None if reason is None else {"reason": reason}

    def act(job: JobRecord) -> bool:
        if job.state in FINAL:
            return job.state == "cancelled"
        revoke(step, job, "cancelled")
        detail, keep = {"prev": job.state}, keep_of_failed(job)
        end(step, job, "cancel", "cancelled", keep, detail=detail, common=common, token=None, reason=reason)
        return True

    answers = _each(queue, command.ids, act)
    apply_retention(step, queue)
    return answers


def retry(step: Step, command: Retry) -> list[Answer]:
    queue = step.queue(command.queue)

    def act(job: JobRecord) -> bool:
        if job.state not in FINAL:
            return False
        again = replace(
            job,
            state="waiting",
            token=None,
            finished_at=None,
            expires_at=None,
            reason=None,
            progress=None,
            result=None,
        )
        if command.reset:
            again = replace(again, attempts_made=0, attempts_started=0, stalled_count=0)
        queue.put(again)
        queue.entry("retry by hand", "waiting").append((job.id, None))
        step.wake(command.queue)
        return True

    return _each(queue, command.ids, act)


def promote(step: Step, command: Promote) -> list[Answer]:
    queue = step.queue(command.queue)

    def act(job: JobRecord) -> bool:
        if job.state != "delayed":
            return False
        queue.put(replace(job, state="waiting", due_at=None))
        queue.entry("promote", "waiting").append((job.id, None))
        step.wake(command.queue)
        return True

    return _each(queue, command.ids, act)


def remove(step: Step, command: Remove) -> list[Answer]:
    queue = step.queue(command.queue)

    def act(job: JobRecord) -> bool:
        if job.state == "active" and not command.force:
            return False
        revoke(step, job, "removed")
        drop(queue, job)
        return True

    return _each(queue, command.ids, act)


def revoke(step: Step, job: JobRecord, why: Why) -> None:
    """Announces to the worker that runs the job, if any, that it lost it. That frees a global concurrency slot."""
    if job.state == "active" and job.token is not None:
        step.revoke(job.queue, RevokedLock(job.id, job.token, why))
        if step.queue(job.queue).settings.max_active is not None:
            step.wake(job.queue)


def _each(queue: QueueData, ids: Sequence[str], act: Callable[[JobRecord], bool]) -> list[Answer]:
    """Applies `act` to each job. It answers False if the job's state does not allow it."""
    answers = []
    for id in ids:
        job = queue.jobs.get(id)
        if job is None:
            answers.append(MISSING)
        else:
            answers.append((DONE if act(job) else REFUSED)[job.state])
    return answers
