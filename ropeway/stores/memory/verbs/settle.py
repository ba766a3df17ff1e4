from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from ....errors import InvalidOption
from ....job.codec import decode
from ....job.failure import UNKNOWN_REASON
from ....job.instants import LAST_INSTANT, Instant
from ....job.numbers import whole
from ....job.outcomes import Outcome
from ....job.record import JobRecord
from ....job.rules import is_repeat
from ....store.commands import Settle
from ....store.values import Answer, FailedAttempt, Settled
from ..queue_data import QueueData
from ..step import Step
from .add import add_bundles
from .answers import DONE, LOST, MISSING
from .claim import claim
from .ending import conclude, end, judge
from .marking import announced_marks


def settle(step: Step, command: Settle) -> Settled:
    queue = step.queue(command.queue)
    answers = [_settle_one(step, queue, outcome) for outcome in command.outcomes]
    conclude(step)
    if queue.settings.max_active is not None:
        step.wake(command.queue)
    return Settled(answers, None if command.then is None else claim(step, command.then))


def _settle_one(step: Step, queue: QueueData, outcome: Outcome) -> Answer:
    job = queue.jobs.get(outcome.id)
    if job is None:
        return MISSING
    if job.state != "active" or job.token != outcome.token:
        if is_repeat(outcome.move, job.state, same_token=job.token == outcome.token):
            return DONE[job.state]
        queue.entry("lock-lost").append((job.id, {"move": outcome.move}))
        return LOST[job.state]
    if outcome.marking is not None:
        marks = announced_marks(queue, job, outcome.marking, step.now)
        job = job if marks is job.marks else replace(job, marks=marks)
    _move(step, queue, job, outcome)
    if outcome.adds:
        add_bundles(step, [[new] for new in outcome.adds])
    if outcome.move not in ("complete", "fail"):
        step.wake(queue.name)
    return DONE["active"]


def _move(step: Step, queue: QueueData, job: JobRecord, outcome: Outcome) -> None:
    match outcome.move:
        case "complete":
            _complete(step, job, outcome)
        case "fail":
            _fail(step, queue, job, outcome)
        case "retry":
            _retry(step, queue, job, outcome)
        case "postpone" | "hand back":
            _give_back(step, queue, job, outcome)
        case unknown:
            raise InvalidOption("move", f"cannot be {unknown!r}")


def _complete(step: Step, job: JobRecord, outcome: Outcome) -> None:
    result = None if outcome.result is None else decode(outcome.result)
    detail = None if result is None else {"result": result}
    end(step, job, "complete", "completed", outcome.keep, detail=detail, reason=None, result=outcome.result)


def _fail(step: Step, queue: QueueData, job: JobRecord, outcome: Outcome) -> None:
    reason = _note_failure(queue, job, outcome, step.now)
    detail: dict[str, Any] = {"reason": reason, "attempt": job.attempts_started}
    if outcome.exhausted:
        detail["exhausted"] = True
    made = job.attempts_made + 1
    end(step, job, "fail", "failed", outcome.keep, detail=detail, attempts_made=made, reason=reason)


def _retry(step: Step, queue: QueueData, job: JobRecord, outcome: Outcome) -> None:
    reason = _note_failure(queue, job, outcome, step.now)
    again = _sent_back(step, job, outcome)
    queue.put(replace(again, attempts_made=job.attempts_made + 1, reason=reason))
    detail = {"reason": reason, "attempt": job.attempts_started, "delay": outcome.delay}
    queue.entry("retry", again.state).append((job.id, detail))


def _give_back(step: Step, queue: QueueData, job: JobRecord, outcome: Outcome) -> None:
    if outcome.awaits_children and (family := queue.families.get(job.id)) and family.is_awaited:
        parent = replace(job, state="waiting-children", lock_until=None)
        queue.change(family, is_released=False)
        queue.put(parent)
        queue.entry("postpone", "waiting-children").append((job.id, None))
        judge(step, parent, family)
        return
    if outcome.awaits is not None and any(mark.name == outcome.awaits for mark in job.marks):
        outcome = replace(outcome, delay=0)
    back = _sent_back(step, job, outcome)
    queue.put(back)
    if outcome.awaits is not None and back.state == "delayed":
        queue.assign(queue.awaited_marks, job.id, outcome.awaits)
    queue.entry(outcome.move, back.state).append((job.id, None if back.due_at is None else {"due_at": back.due_at}))


def _note_failure(queue: QueueData, job: JobRecord, outcome: Outcome, now: Instant) -> str:
    failure = outcome.failure
    reason, trace = (failure.reason, failure.trace) if failure else (UNKNOWN_REASON, "")
    attempt = FailedAttempt(job.attempts_started, now, job.worker, reason, trace, job.started_at)
    queue.afterwards(queue.histories.fail, job.id, attempt, outcome.stack_traces)
    return reason


def _sent_back(step: Step, job: JobRecord, outcome: Outcome) -> JobRecord:
    """The job, delayed, or waiting in its former position ("hand back"), or waiting behind all others."""
    if outcome.move == "hand back":
        return replace(job, state="waiting", lock_until=None)
    delay = whole("delay", outcome.delay, 0, LAST_INSTANT)
    if delay:
        return replace(job, state="delayed", due_at=min(step.now + delay, LAST_INSTANT), lock_until=None)
    return replace(job, state="waiting", lock_until=None, order=next(step.shared.sequence))
