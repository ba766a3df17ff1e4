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
from ....job.retention import Retention
from ....job.rules import is_repeat
from ....store.commands import Settle
from ....store.values import Answer, FailedAttempt, Settled
from ..book import Book
from ..step import Step
from .answers import DONE, LOST, MISSING
from .claim import claim
from .retention import retain


def settle(step: Step, command: Settle) -> Settled:
    book = step.book(command.queue)
    finished: list[tuple[JobRecord, Retention]] = []
    answers = [_settle_one(step, book, outcome, finished) for outcome in command.outcomes]
    retain(book, finished)
    if book.settings.max_active is not None:
        step.wake(command.queue)
    return Settled(answers, None if command.then is None else claim(step, command.then))


def _settle_one(step: Step, book: Book, outcome: Outcome, finished: list[tuple[JobRecord, Retention]]) -> Answer:
    job = book.jobs.get(outcome.id)
    if job is None:
        return MISSING
    if job.state != "active" or job.token != outcome.token:
        if is_repeat(outcome.move, job.state, same_token=job.token == outcome.token):
            return DONE[job.state]
        book.entry("lock-lost").append((job.id, {"move": outcome.move}))
        return LOST[job.state]
    match outcome.move:
        case "complete":
            _complete(book, job, outcome, step.now)
        case "fail":
            _fail(book, job, outcome, step.now)
        case "retry":
            _retry(step, book, job, outcome)
        case "postpone" | "hand back":
            _give_back(step, book, job, outcome)
        case unknown:
            raise InvalidOption("move", f"cannot be {unknown!r}")
    if outcome.move in ("complete", "fail"):
        finished.append((book.jobs[job.id], outcome.keep))
    else:
        step.wake(book.name)
    return DONE["active"]


def _complete(book: Book, job: JobRecord, outcome: Outcome, now: Instant) -> None:
    done = replace(
        job,
        state="completed",
        lock_until=None,
        finished_at=now,
        expires_at=outcome.keep.until(now),
        reason=None,
        result=outcome.result,
    )
    book.put(done)
    result = None if outcome.result is None else decode(outcome.result)
    book.entry("complete", "completed").append((job.id, None if result is None else {"result": result}))


def _fail(book: Book, job: JobRecord, outcome: Outcome, now: Instant) -> None:
    reason = _note_failure(book, job, outcome, now)
    failed = replace(
        job,
        state="failed",
        attempts_made=job.attempts_made + 1,
        lock_until=None,
        finished_at=now,
        expires_at=outcome.keep.until(now),
        reason=reason,
    )
    book.put(failed)
    detail: dict[str, Any] = {"reason": reason, "attempt": job.attempts_started}
    if outcome.exhausted:
        detail["exhausted"] = True
    book.entry("fail", "failed").append((job.id, detail))


def _retry(step: Step, book: Book, job: JobRecord, outcome: Outcome) -> None:
    reason = _note_failure(book, job, outcome, step.now)
    again = _sent_back(step, job, outcome)
    book.put(replace(again, attempts_made=job.attempts_made + 1, reason=reason))
    detail = {"reason": reason, "attempt": job.attempts_started, "delay": outcome.delay}
    book.entry("retry", again.state).append((job.id, detail))


def _give_back(step: Step, book: Book, job: JobRecord, outcome: Outcome) -> None:
    back = _sent_back(step, job, outcome)
    book.put(back)
    book.entry(outcome.move, back.state).append((job.id, None if back.due_at is None else {"due_at": back.due_at}))


def _note_failure(book: Book, job: JobRecord, outcome: Outcome, now: Instant) -> str:
    failure = outcome.failure
    reason, trace = (failure.reason, failure.trace) if failure else (UNKNOWN_REASON, "")
    attempt = FailedAttempt(job.attempts_started, now, job.worker, reason, trace)
    book.afterwards(book.pasts.fail, job.id, attempt, outcome.stack_traces)
    return reason


def _sent_back(step: Step, job: JobRecord, outcome: Outcome) -> JobRecord:
    """The job after its delay; in the place that it had, or without a delay behind those that wait."""
    if outcome.move == "hand back":
        return replace(job, state="waiting", lock_until=None)
    delay = whole("delay", outcome.delay, 0, LAST_INSTANT)
    if delay:
        return replace(job, state="delayed", due_at=min(step.now + delay, LAST_INSTANT), lock_until=None)
    return replace(job, state="waiting", lock_until=None, order=next(step.place.sequence))
