"""Commands of a lock's holder while its job runs: renew and update. Also `clear_log`."""

from __future__ import annotations

from msgspec.structs import replace

from ....errors import InvalidOption
from ....job.codec import decode
from ....job.flows import Parent
from ....job.instants import LAST_INSTANT
from ....job.numbers import whole
from ....job.record import JobRecord
from ....job.states import FINAL
from ....store.commands import ClearLog, Renew, Update
from ....store.values import Answer, JobUpdate
from ..families import Family
from ..queue_data import QueueData
from ..step import Step
from .add import add_bundles
from .answers import DONE, LOST, MISSING, REFUSED
from .claim import mark_alone
from .marking import announced_marks
from .storing import promote_one


def renew(step: Step, command: Renew) -> list[Answer]:
    lock_until = min(step.now + whole("lock", command.lock, 0, LAST_INSTANT), LAST_INSTANT)
    queue = step.queue(command.queue)
    answers = []
    for held in command.locks:
        job = queue.jobs.get(held.id)
        answers.append(_verdict(job, held.token))
        if job is not None and answers[-1].verdict == "done":
            queue.put(replace(job, lock_until=lock_until, renewed_at=step.now))
    return answers


def update(step: Step, command: Update) -> list[Answer]:
    queue = step.queue(command.queue)
    answers = []
    for update in command.updates:
        job = queue.jobs.get(update.id)
        verdict = _verdict(job, update.token)
        if job is not None and verdict.verdict == "done":
            if update.children and not _add_children(step, queue, job, update):
                verdict = REFUSED[job.state]
            else:
                _apply(step, queue, queue.jobs[job.id], update)
        answers.append(verdict)
    return answers


def _add_children(step: Step, queue: QueueData, job: JobRecord, update: JobUpdate) -> bool:
    """Adds children to an active job; False if one of their ids exists already, and then none is added."""
    if update.token is None:
        raise InvalidOption("children", "need the token of the job that gets them")
    [added] = add_bundles(step, [update.adds], Parent(job.queue, job.id))
    if any(one.verdict == "conflict" for one in added):
        return False
    family = queue.families.get(job.id)
    if family is None:
        family = Family({}, is_released=True)
        queue.found(job.id, family)
    queue.adopt(family, update.children)
    queue.put(replace(job, children=len(family.links)))
    return True


def clear_log(step: Step, command: ClearLog) -> Answer:
    queue = step.queue(command.queue)
    job = queue.jobs.get(command.id)
    if job is None:
        return MISSING
    queue.afterwards(queue.histories.clear, command.id, command.keep)
    return DONE[job.state]


def _verdict(job: JobRecord | None, token: str | None) -> Answer:
    if job is None:
        return MISSING
    if token is None:
        return REFUSED[job.state] if job.state in FINAL else DONE[job.state]
    return DONE["active"] if job.state == "active" and job.token == token else LOST[job.state]


def _apply(step: Step, queue: QueueData, job: JobRecord, update: JobUpdate) -> None:
    if update.progress is not None:
        queue.entry("progress").append((job.id, {"progress": decode(update.progress)}))
    if update.data is not None:
        queue.entry("changed").append((job.id, {"data": True}))
    if update.log:
        queue.afterwards(queue.histories.write, job.id, step.now, tuple(update.log), update.keep_logs)
    if update.alone is not None and job.state == "active":
        mark_alone(queue, job, alone=update.alone)
    marking = update.marking
    job = replace(
        job,
        progress=job.progress if update.progress is None else update.progress,
        data=job.data if update.data is None else update.data,
        marks=job.marks if marking is None else announced_marks(queue, job, marking, step.now),
        stalled_count=0 if update.clears_stalls and job.state == "active" else job.stalled_count,
    )
    queue.amend(job)
    if marking is not None and update.token is None:
        awaited = queue.awaited_marks.get(job.id)
        if any(mark.name == awaited for mark in marking.marks):
            promote_one(step, job)
