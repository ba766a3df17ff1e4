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
    if any(marking.forgets for _, marking in markings):
        marked = {job.seq for job, _ in markings if job.has & HAS_MARKS}
        forgotten = dict.fromkeys((job.seq, name) for job, marking in markings for name in marking.forgets)
        tx.run_many(_SQL["forget"], [key for key in forgotten if key[0] in marked])
    insert_marks(tx, [(job.seq, marking) for job, marking in markings], now)
    _announce(row, markings, now)
    return _note(tx, [job for job, marking in markings if marking.marks])


def insert_marks(tx: Transaction, markings: Sequence[tuple[int, Marking]], now: Instant) -> None:
    """Writes marks of jobs, by their sequence numbers, in the given order."""
    shared = markings[0][1]
    # Jobs in one phase of a pipeline share an object, as long as it has no result.
    if all(marking is shared for _, marking in markings):
        seqs = as_json([seq for seq, _ in markings])
        for mark in shared.marks:
            tx.run(_SQL["write_alike"], {"seqs": seqs, "name": mark.name, "at": now, "value": mark.value})
        return
    values: dict[tuple[int, str], JsonText] = {}
    for seq, marking in markings:
        for name in marking.forgets:
            values.pop((seq, name), None)
        for mark in marking.marks:
            values[seq, mark.name] = mark.value
    if values:
        tx.run_many(_SQL["write"], [(seq, name, now, value) for (seq, name), value in values.items()])


def _announce(row: QueueRow, markings: Markings, now: Instant) -> None:
    """Writes as few entries as keep the notices of each job in order."""
    shared = markings[0][1].notices
    if all(marking.notices is shared for _, marking in markings) and _are_different(markings):
        row.announce_alike(shared, now, [job.id for job, _ in markings])
        return
    entries: list[tuple[Notice, list[tuple[str, None]]]] = []
    # By the identity of the notices, which those of one phase share; `markings` keeps them alive.
    known: dict[int, list[int]] = {}
    last: dict[int, int] = {}
    for job, marking in markings:
        if not (notices := marking.notices):
            continue
        places = None if job.seq in last else known.get(id(notices))
        if places is None:
            places = known[id(notices)] = _places_of(notices, entries, last.get(job.seq, -1))
        for place in places:
            entries[place][1].append((job.id, None))
        last[job.seq] = places[-1]
    for notice, jobs in entries:
        row.announce(notice.what, now, jobs=jobs, detail=msgspec.Raw(notice.detail))


def _are_different(markings: Markings) -> bool:
    return len({job.seq for job, _ in markings}) == len(markings)


def _places_of(
    notices: Sequence[Notice], entries: list[tuple[Notice, list[tuple[str, None]]]], behind: int
) -> list[int]:
    """The places of entries for the notices of a job, in their order and after `behind`; makes those that lack."""
    places: list[int] = []
    for notice in notices:
        behind += 1
        while behind < len(entries) and entries[behind][0] != notice:
            behind += 1
        if behind == len(entries):
            entries.append((notice, []))
        places.append(behind)
    return places


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
