from __future__ import annotations

from msgspec.structs import replace

from ....job.instants import Instant
from ....job.options import readable_options
from ....job.record import JobRecord
from ....job.stalls import GIVEN_UP, judge_stall, stall_reason
from ....store.commands import Tick
from ....store.values import BATCH, FailedAttempt, StallRules, Ticked
from ..book import Book
from ..step import Step
from .claim import promote_due
from .ending import apply_retention, drop, end, keep_of_failed


def tick(step: Step, command: Tick) -> Ticked:
    book = step.book(command.queue)
    promoted = promote_due(step, book)
    stalled, given_up = _recover(step, book, command.rules)
    removed = _expire(step, book)
    frees_room = bool(given_up) and book.settings.max_active is not None
    if promoted or stalled or frees_room:
        step.wake(command.queue)
    book.afterwards(book.stream.trim)
    book.afterwards(book.metrics.trim, step.now)
    book.afterwards(step.place.revoked.trim, step.now)
    book.afterwards(step.place.records.trim, step.now)
    is_full = BATCH in (promoted, len(stalled) + len(given_up), removed)
    return Ticked(promoted, stalled, given_up, removed, _next_at(book), is_full, step.now)


def _recover(step: Step, book: Book, rules: StallRules) -> tuple[list[str], list[str]]:
    """Ids that wait again, and ids that are given up."""
    stalled: list[str] = []
    given_up: list[str] = []
    for _, _, id in book.locks.first(BATCH, before=(step.now + 1,)):
        is_given_up = _stall(step, book, book.jobs[id], rules)
        (given_up if is_given_up else stalled).append(id)
    apply_retention(step, book)
    return stalled, given_up


def _stall(step: Step, book: Book, job: JobRecord, rules: StallRules) -> bool:
    """Whether the job was given up."""
    options = readable_options(job.options)
    verdict = judge_stall(
        stalled_count=job.stalled_count,
        attempts_made=job.attempts_made,
        attempts=options.attempts,
        is_alone=book.alone.get(job.id) == job.token,
        max_stalled_count=rules.max_stalled_count,
        on_stalled=rules.on_stalled,
        counts_as_attempt=rules.counts_as_attempt,
    )
    reason = stall_reason(verdict, job.worker, job.renewed_at, rules.ends)
    attempt = FailedAttempt(job.attempts_started, step.now, job.worker, reason)
    book.afterwards(book.pasts.fail, job.id, attempt, options.stack_traces)
    stalled = replace(
        job,
        stalled_count=job.stalled_count + 1,
        attempts_made=job.attempts_made + (rules.counts_as_attempt and verdict != "spared"),
        token=None,
        reason=reason,
    )
    detail = {"worker": job.worker, "stalled_count": stalled.stalled_count}
    if verdict in GIVEN_UP:
        exhausted = {"exhausted": True} if verdict == "last attempt" else {}
        detail |= {"reason": reason, **exhausted}
        end(step, stalled, "give up", "failed", keep_of_failed(job), detail=detail)
        return True
    book.put(replace(stalled, state="waiting", lock_until=None))
    book.entry("stall", "waiting").append((job.id, detail))
    return False


def _expire(step: Step, book: Book) -> int:
    over = book.expiries.first(BATCH, before=(step.now + 1,))
    for _, _, id in over:
        drop(book, book.jobs[id])
    return len(over)


def _next_at(book: Book) -> Instant | None:
    heads = (book.shelf("delayed").counted.least, book.locks.least, book.expiries.least)
    return min((head[0] for head in heads if head), default=None)
