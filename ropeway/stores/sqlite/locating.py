"""Finds the jobs of a batch with their states, reads them, and deletes the rows of those states."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

import apsw
import msgspec

from ...job.options import StoredOptions, readable_options
from ...job.record import JobRecord
from ...job.states import State
from ...store.values import MISSING, Answer
from .decoding import decoder
from .statements import statements
from .transaction import QueueRow, Transaction, as_json

K = TypeVar("K")
T = TypeVar("T")

_SQL: Final = statements("look")
_DELETE: Final = statements("delete_state_rows")
TABLES: Final[dict[State, str]] = {
    "waiting": "waiting",
    "waiting-children": "later",
    "delayed": "later",
    "active": "active",
    "completed": "finished",
    "failed": "finished",
    "cancelled": "finished",
}


class LocatedJob(msgspec.Struct, array_like=True, gc=False):
    """A job of a batch with its state. Verbs update it, so that a repeated id meets what its first time did."""

    seq: int
    id: str
    state: State | None
    """None if there is no such job."""
    token: str | None
    worker: str | None
    attempts_started: int
    logged: int
    has: int = 0


_located: Final[Callable[[bytes], list[LocatedJob]]] = decoder(list[LocatedJob])
records: Final[Callable[[bytes], list[JobRecord]]] = decoder(list[JobRecord])
_options: Final[Callable[[bytes], list[tuple[int, str]]]] = decoder(list[tuple[int, str]])


def locate(tx: Transaction, row: QueueRow, ids: Sequence[str]) -> list[LocatedJob]:
    """Returns one for each id, in order; the same object for the same id."""
    known = _locate_claimed(tx, row, ids)
    if others := [id for id in ids if id not in known]:
        found = _located(tx.get(_SQL["located"], {"queue": row.id, "ids": as_json(others)}))
        known.update({job.id: job for job in found})
    for id in ids:
        if id not in known:
            known[id] = LocatedJob(0, id, None, None, None, 0, 0)
    return [known[id] for id in ids]


def _locate_claimed(tx: Transaction, row: QueueRow, ids: Sequence[str]) -> dict[str, LocatedJob]:
    """Finds active jobs that this process claimed, by id, without a look into the table of all jobs."""
    claimed = tx.seqs_of_claimed(row, ids)
    if not claimed:
        return {}
    jobs_found = _located(tx.get(_SQL["located_active"], {"seqs": as_json(list(claimed))}))
    for job in jobs_found:
        job.id = claimed[job.seq]
    return {job.id: job for job in jobs_found}


def delete_state_rows(tx: Transaction, state: State, seqs: Sequence[int]) -> None:
    """Deletes jobs from the table of their state."""
    tx.run(_DELETE[TABLES[state]], {"seqs": as_json(seqs)})


def grouped(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Items by their key, in their order."""
    groups: defaultdict[K, list[T]] = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return groups


def reach(
    jobs_found: Sequence[LocatedJob], sources: Sequence[State], target: State
) -> tuple[list[Answer], list[tuple[LocatedJob, State]]]:
    """Answers for jobs that may move to `target`, and those that do, with the states that they come from."""
    answers: list[Answer] = []
    reached: list[tuple[LocatedJob, State]] = []
    for job in jobs_found:
        if job.state is None:
            answers.append(MISSING)
        elif job.state in sources:
            answers.append(Answer("done", job.state))
            reached.append((job, job.state))
            job.state = target
        else:
            answers.append(Answer("refused", job.state))
    return answers, reached


def options_of(tx: Transaction, seqs: Iterable[int]) -> dict[int, StoredOptions]:
    rows = _options(tx.get(_SQL["options"], {"seqs": as_json(list(seqs))}))
    return {seq: readable_options(options) for seq, options in rows}


def records_of(tx: Transaction, row: QueueRow, seqs: Sequence[int], *, with_marks: bool = False) -> list[JobRecord]:
    statement = _SQL["records_by_seq" if with_marks else "listed_by_seq"]
    try:
        return records(tx.get(statement, {"queue_name": row.name, "seqs": as_json(seqs)}))
    except apsw.TooBigError:
        if len(seqs) == 1:
            raise
        half = len(seqs) // 2
        return [job for part in (seqs[:half], seqs[half:]) for job in records_of(tx, row, part, with_marks=with_marks)]
