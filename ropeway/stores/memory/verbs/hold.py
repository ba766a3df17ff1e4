"""What the holder of a lock does while the job runs: renew and update."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ....job.codec import decode
from ....job.instants import LAST_INSTANT, Milliseconds
from ....job.numbers import whole
from ....job.record import JobRecord
from ....job.states import FINAL
from ....store.values import Answer, Change, Lock
from ..book import Book
from ..step import Step
from .answers import DONE, LOST, MISSING, REFUSED
from .claim import mark_alone


def renew(step: Step, queue: str, locks: Sequence[Lock], lock: Milliseconds) -> list[Answer]:
    lock_until = min(step.now + whole("lock", lock, 0, LAST_INSTANT), LAST_INSTANT)
    book = step.book(queue)
    answers = []
    for held in locks:
        job = book.jobs.get(held.id)
        answers.append(_verdict(job, held.token))
        if job is not None and answers[-1].verdict == "done":
            book.put(replace(job, lock_until=lock_until, renewed_at=step.now))
    return answers


def update(step: Step, queue: str, changes: Sequence[Change]) -> list[Answer]:
    book = step.book(queue)
    answers = []
    for change in changes:
        job = book.jobs.get(change.id)
        answers.append(_verdict(job, change.token))
        if job is not None and answers[-1].verdict == "done":
            _apply(step, book, job, change)
    return answers


def clear_log(step: Step, queue: str, id: str, keep: int) -> Answer:
    book = step.book(queue)
    job = book.jobs.get(id)
    if job is None:
        return MISSING
    book.afterwards(book.pasts.clear, id, keep)
    return DONE[job.state]


def _verdict(job: JobRecord | None, token: str | None) -> Answer:
    if job is None:
        return MISSING
    if token is None:
        return REFUSED[job.state] if job.state in FINAL else DONE[job.state]
    return DONE["active"] if job.state == "active" and job.token == token else LOST[job.state]


def _apply(step: Step, book: Book, job: JobRecord, change: Change) -> None:
    if change.progress is not None:
        book.entry("progress").append((job.id, {"progress": decode(change.progress)}))
    if change.data is not None:
        book.entry("changed").append((job.id, {"data": True}))
    if change.log:
        book.afterwards(book.pasts.write, job.id, step.now, tuple(change.log), change.keep_logs)
    if change.alone is not None and job.state == "active":
        mark_alone(book, job, alone=change.alone)
    if change.progress is not None or change.data is not None:
        progress = job.progress if change.progress is None else change.progress
        data = job.data if change.data is None else change.data
        book.put(replace(job, progress=progress, data=data))
