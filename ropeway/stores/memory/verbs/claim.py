from __future__ import annotations

from msgspec.structs import replace

from ....job.instants import LAST_INSTANT
from ....job.numbers import whole
from ....job.record import JobRecord
from ....store.commands import Claim
from ....store.values import BATCH, Claimed
from ..book import Book
from ..keys import Key
from ..step import Step


def claim(step: Step, request: Claim) -> Claimed:
    whole("lock", request.lock, 0, LAST_INSTANT)
    whole("limit", request.limit, 0, LAST_INSTANT)
    book = step.book(request.queue)
    jobs = _held(book, request.token) if request.repeat else []
    if not jobs:
        promoted = promote_due(step, book)
        jobs = _take(step, book, request)
        if promoted > len(jobs):
            step.wake(book.name)
    due = book.shelf("delayed").counted.least if len(jobs) < request.limit else None
    return Claimed(jobs, step.now, due[0] if due else None)


def promote_due(step: Step, book: Book) -> int:
    """At most `BATCH` jobs, in the order in which they became due."""
    due = book.shelf("delayed").counted.first(BATCH, before=(step.now + 1,))
    for _, _, id in due:
        job = book.jobs[id]
        book.put(replace(job, state="waiting", due_at=None))
        book.entry("promote", "waiting").append((id, None))
    return len(due)


def mark_alone(book: Book, job: JobRecord, *, alone: bool) -> None:
    """Only of a job that stalled before does anybody ask."""
    book.afterwards(book.mark, job.id, job.token if alone and job.stalled_count else None)


def _held(book: Book, token: str) -> list[JobRecord]:
    active = (book.jobs[id] for _, _, id in book.shelf("active").keys)
    held = [job for job in active if job.token == token]
    return sorted(held, key=lambda job: (job.priority, job.order))


def _take(step: Step, book: Book, request: Claim) -> list[JobRecord]:
    now, lock_until = step.now, min(step.now + request.lock, LAST_INSTANT)
    taken = []
    entries = book.entry("claim", "active", {"worker": request.worker})
    for _, _, id in _next(book, request):
        job = book.jobs[id]
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
        book.put(claimed)
        if job.stalled_count and not request.isolates:
            mark_alone(book, claimed, alone=True)
        entries.append((id, None))
        taken.append(claimed)
    return taken


def _next(book: Book, request: Claim) -> list[Key]:
    settings, waiting, limit = book.settings, book.shelf("waiting"), request.limit
    if settings.paused:
        return []
    if settings.max_active is not None:
        limit = max(0, min(limit, settings.max_active - len(book.shelf("active"))))
    if not settings.paused_names and request.names is None:
        return waiting.counted.first(limit)
    paused, names = frozenset(settings.paused_names), request.names
    wanted = None if names is None else frozenset(names)
    return waiting.first_named(lambda name: name not in paused and (wanted is None or name in wanted), wanted, limit)
