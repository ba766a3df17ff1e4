"""Commands that operators and applications apply to jobs: cancel, retry, promote, remove."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from ....job.record import JobRecord
from ....job.states import FINAL
from ....store.commands import Cancel, Promote, Remove, Retry
from ....store.values import Answer
from ..queue_data import QueueData
from ..step import Step
from .answers import DONE, MISSING, REFUSED
from .ending import conclude, drop, end, keep_of_failed, revoke
from .flows import failed_children
from .marking import marks_after


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
    conclude(step)
    return answers


def retry(step: Step, command: Retry) -> list[Answer]:
    def act(job: JobRecord) -> bool:
        if job.state not in FINAL:
            return False
        # A parent that failed by its children is retried with them, and so are they. A list: flows may be deep.
        again = [job]
        while again:
            next_job = again.pop()
            # A job with two parents may come twice.
            if step.queue(next_job.queue).jobs[next_job.id].state in FINAL:
                again += _retry(step, next_job, reset=command.reset)
        if command.marking is not None:
            queue = step.queue(job.queue)
            retried = queue.jobs[job.id]
            queue.amend(replace(retried, marks=marks_after(retried, command.marking, step.now)))
        return True

    return _each(step.queue(command.queue), command.ids, act)


def _retry(step: Step, job: JobRecord, *, reset: bool) -> list[JobRecord]:
    """Makes a finished job wait again; returns the children that are to be retried with it."""
    queue = step.queue(job.queue)
    family = queue.families.get(job.id)
    children: list[JobRecord] = []
    if family is not None and not family.is_released:
        queue.change(family, owed=None)
        children = failed_children(step, job, family)
    waits = family is not None and family.left > 0 and not family.is_released
    again = replace(
        job,
        state="waiting-children" if waits else "waiting",
        token=None,
        finished_at=None,
        expires_at=None,
        reason=None,
        progress=None,
        result=None,
    )
    if reset:
        again = replace(again, attempts_made=0, attempts_started=0, stalled_count=0)
    queue.put(again)
    queue.entry("retry by hand", again.state).append((job.id, None))
    step.wake(job.queue)
    return children


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
        drop(step, job)
        return True

    answers = _each(queue, command.ids, act)
    conclude(step)
    return answers


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
