"""What becomes of finished jobs at once, and how any job goes."""

from __future__ import annotations

from collections.abc import Iterable

from ....job.record import JobRecord
from ....job.retention import Retention
from ....job.states import State
from ....store.values import BATCH
from ..book import Book


def drop(book: Book, job: JobRecord) -> None:
    """Removes the job and all about it, and says so."""
    book.drop(job.id)
    book.entry("remove").append((job.id, {"prev": job.state}))


def retain(book: Book, finished: Iterable[tuple[JobRecord, Retention]]) -> None:
    """Applies what was said about jobs that this step finished.

    At most `BATCH` older ones go; the next that finishes takes up where this left off.
    """
    counts: dict[State, int] = {}
    for job, keep in finished:
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
