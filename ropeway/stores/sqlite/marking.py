"""Marks of jobs: writing them, and the delays that end with one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import msgspec
from msgspec.structs import replace

from ...job.codec import JsonText
from ...job.instants import Instant
from ...job.marks import Marking, Notice
from ...job.outcomes import Outcome
from ...store.values import JobUpdate
from .decoding import decoder
from .locating import LocatedJob
from .placeholders import HAS_MARKS
from .promoting import promote
from .statements import statements
from .transaction import QueueRow, Transaction, as_json

_SQL: Final = statements("marks")
_places: Final[Callable[[bytes], list[int]]] = decoder(list[int])

Markings: TypeAlias = Sequence[tuple[LocatedJob, Marking]]


def write_marks(tx: Transaction, row: QueueRow, markings: Markings, now: Instant) -> set[int]:
    """Deletes and writes marks in the given order, and announces what is to be announced.

    Returns the sequence numbers of jobs that had none before: the rows of their states do not say yet that they have.
    """
    values: dict[tuple[int, str], JsonText | None] = {}
    for job, marking in markings:
        values |= {(job.seq, name): None for name in marking.forgets}
        values |= {(job.seq, mark.name): mark.value for mark in marking.marks}
    marked = {job.seq for job, _ in markings if job.has & HAS_MARKS}
    if forgotten := [key for key, value in values.items() if value is None and key[0] in marked]:
        tx.run_many(_SQL["forget"], forgotten)
    if written := [(seq, name, now, value) for (seq, name), value in values.items() if value is not None]:
        tx.run_many(_SQL["write"], written)
    _announce(row, markings, now)
    return _note(tx, [job for job, marking in markings if marking.marks])


def _announce(row: QueueRow, markings: Markings, now: Instant) -> None:
    """Writes as few entries as keep the notices of each job in order."""
    entries: list[tuple[Notice, list[tuple[str, msgspec.Raw]]]] = []
    newest: dict[str, int] = {}
    last: dict[int, int] = {}
    for job, marking in markings:
        for notice in marking.notices:
            place = newest.get(notice.what, -1)
            if place <= last.get(job.seq, -1):
                place = newest[notice.what] = len(entries)
                entries.append((notice, []))
            entries[place][1].append((job.id, msgspec.Raw(notice.detail)))
            last[job.seq] = place
    for notice, jobs in entries:
        row.announce(notice.what, now, jobs=jobs)


def _note(tx: Transaction, jobs: Sequence[LocatedJob]) -> set[int]:
    fresh = {job.seq for job in jobs if not job.has & HAS_MARKS}
    if fresh:
        tx.run(_SQL["note"], {"seqs": as_json(list(fresh))})
        for job in jobs:
            job.has |= HAS_MARKS
    return fresh


def end_waits(tx: Transaction, jobs_found: Sequence[LocatedJob], outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Takes the delay from outcomes that await a mark which is there, or which they write themselves."""
    awaited = [
        (place, job.seq, outcome.awaits)
        for place, (job, outcome) in enumerate(zip(jobs_found, outcomes, strict=True))
        if outcome.awaits is not None and outcome.move == "postpone"
    ]
    found = _places(tx.get(_SQL["there"], {"marks": as_json([(seq, name) for _, seq, name in awaited])}))
    there = {awaited[index][0] for index in found}
    ended = list(outcomes)
    for place, _, name in awaited:
        marking = ended[place].marking or Marking()
        is_written = any(mark.name == name for mark in marking.marks)
        if is_written or (place in there and name not in marking.forgets):
            ended[place] = replace(ended[place], delay=0)
    return ended


def promote_awaiting(
    tx: Transaction, row: QueueRow, changes: Sequence[tuple[LocatedJob, JobUpdate]], now: Instant
) -> None:
    """Promotes jobs that are delayed until there is a mark which they got now, from others than a worker."""
    marks = [
        (job.seq, mark.name, job.id)
        for job, change in changes
        if change.marking is not None and change.token is None and job.state == "delayed"
        for mark in change.marking.marks
    ]
    if marks:
        found = _places(tx.get(_SQL["awaited"], {"marks": as_json(marks)}))
        if ended := {marks[place][0]: marks[place][2] for place in found}:
            promote(tx, row, list(ended.items()), now)
