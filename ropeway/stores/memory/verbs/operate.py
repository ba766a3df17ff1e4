"""What people do to jobs by hand: cancel, retry, promote, remove."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from ....job.record import JobRecord
from ....job.states import FINAL
from ....store.commands import Cancel, Promote, Remove, Retry
from ....store.values import Answer, RevokedLock, Why
from ..book import Book
from ..step import Step
from .answers import DONE, MISSING, REFUSED
from .ending import apply_retention, drop, end, keep_of_failed


def cancel(step: Step, command: Cancel) -> list[Answer]:
    book, reason = step.book(command.queue), command.reason
    common = None if reason is None else {"reason": reason}

    def act(job: JobRecord) -> bool:
        if job.state in FINAL:
            return job.state == "cancelled"
        revoke(step, job, "cancelled")
        detail, keep = {"prev": job.state}, keep_of_failed(job)
        end(step, job, "cancel", "cancelled", keep, detail=detail, common=common, token=None, reason=reason)
        return True

    answers = _each(book, command.ids, act)
    apply_retention(step, book)
    return answers


def retry(step: Step, command: Retry) -> list[Answer]:
    book = step.book(command.queue)

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
        book.put(again)
        book.entry("retry by hand", "waiting").append((job.id, None))
        step.wake(command.queue)
        return True

    return _each(book, command.ids, act)


def promote(step: Step, command: Promote) -> list[Answer]:
    book = step.book(command.queue)

    def act(job: JobRecord) -> bool:
        if job.state != "delayed":
            return False
        book.put(replace(job, state="waiting", due_at=None))
        book.entry("promote", "waiting").append((job.id, None))
        step.wake(command.queue)
        return True

    return _each(book, command.ids, act)


def remove(step: Step, command: Remove) -> list[Answer]:
    book = step.book(command.queue)

    def act(job: JobRecord) -> bool:
        if job.state == "active" and not command.force:
            return False
        revoke(step, job, "removed")
        drop(book, job)
        return True

    return _each(book, command.ids, act)


def revoke(step: Step, job: JobRecord, why: Why) -> None:
    """Tells the worker that runs the job, if one does; its place is free for another."""
    if job.state == "active" and job.token is not None:
        step.revoke(job.queue, RevokedLock(job.id, job.token, why))
        if step.book(job.queue).settings.max_active is not None:
            step.wake(job.queue)


def _each(book: Book, ids: Sequence[str], act: Callable[[JobRecord], bool]) -> list[Answer]:
    """`act` says whether the job's state allows it."""
    answers = []
    for id in ids:
        job = book.jobs.get(id)
        if job is None:
            answers.append(MISSING)
        else:
            answers.append((DONE if act(job) else REFUSED)[job.state])
    return answers
