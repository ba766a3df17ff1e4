"""The one place where a job becomes final, and the one where it is removed."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from ....job.options import readable_options
from ....job.record import JobRecord
from ....job.retention import KEEP_FAILED, Retention
from ....job.states import State
from ....store.values import BATCH
from ..book import Book
from ..step import Step


def end(
    step: Step,
    job: JobRecord,
    what: str,
    state: State,
    keep: Retention,
    *,
    detail: dict[str, Any] | None = None,
    common: dict[str, Any] | None = None,
    **changes: Any,
) -> JobRecord:
    """Makes the job final and announces it; `apply_retention` must follow, when all of the step have ended.

    `detail` is about this job, `common` about all that end alike in this step.
    """
    book, now = step.book(job.queue), step.now
    final = replace(
        job, state=state, due_at=None, lock_until=None, finished_at=now, expires_at=keep.until(now), **changes
    )
    book.put(final)
    book.entry(what, state, common).append((job.id, detail))
    step.ended.append((final, keep))
    return final


def keep_of_failed(job: JobRecord) -> Retention:
    """How long a job is kept that ends without a worker, which might have its own rule."""
    return readable_options(job.options).keep_failed or KEEP_FAILED


def drop(book: Book, job: JobRecord) -> None:
    """Removes the job and all about it, and announces that."""
    book.drop(job.id)
    book.entry("remove").append((job.id, {"prev": job.state}))


def apply_retention(step: Step, book: Book) -> None:
    """Removes what the jobs that ended in this step do not keep.

    At most `BATCH` older ones go; the next that finishes takes up where this left off.
    """
    counts: dict[State, int] = {}
    for job, keep in step.ended:
        if keep.removes_at_once:
            drop(book, job)
        elif keep.count is not None:
            counts[job.state] = min(keep.count, counts.get(job.state, keep.count))
    allowance = BATCH
    for state, count in counts.items():
        keys = book.shelf(state).counted
        surplus = keys.first(min(len(keys) - count, allowance)) if len(keys) > count else []
        for _, _, id in surplus:
            drop(book, book.jobs[id])
        allowance -= len(surplus)
