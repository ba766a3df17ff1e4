"""renew and update: reports of running handlers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Final

import msgspec

from ...job.instants import Milliseconds
from ...job.states import FINAL
from ...store.commands import Renew, Update
from ...store.values import HELD, MISSING, Answer, JobUpdate, Lock
from .awaiting import add_children
from .held_updates import held_here, update_held
from .locating import TABLES, LocatedJob, locate
from .marking import promote_awaiting, write_marks
from .statements import statements
from .transaction import Detail, QueueRow, Transaction, as_json
from .verbs import writes

_RENEW: Final = statements("renew")["renew"]
_SQL: Final = statements("update")


@writes(Renew, must_last=False)
def renew(tx: Transaction, queue: str, locks: Sequence[Lock], lock: Milliseconds) -> list[Answer]:
    row = tx.queue(queue)
    now = tx.now()
    jobs_found = locate(tx, row, [held.id for held in locks])
    answers = [_under_token(job, held.token) for job, held in zip(jobs_found, locks, strict=True)]
    seqs = [job.seq for job, answer in zip(jobs_found, answers, strict=True) if answer.verdict == "done"]
    if seqs:
        tx.run(_RENEW, {"seqs": as_json(seqs), "now": now, "lock_until": now + lock})
    return answers


@writes(Update)
def update(tx: Transaction, queue: str, changes: Sequence[JobUpdate]) -> list[Answer]:
    if len(changes) > 1 and _may_promote_repeated(changes):
        return [answer for change in changes for answer in update(tx, queue, [change])]
    row = tx.queue(queue)
    now = tx.now()
    if (seqs := held_here(tx, row, changes)) is not None:
        reached = update_held(tx, row, changes, seqs, now)
        lost = [change for change in changes if change.id not in reached]
        refusals = {job.id: _may_change(job, change) for job, change in zip(_find(tx, row, lost), lost, strict=True)}
        return [refusals.get(change.id, HELD) for change in changes]
    jobs_found = _find(tx, row, changes)
    answers = [_may_change(job, change) for job, change in zip(jobs_found, changes, strict=True)]
    for place, (job, change) in enumerate(zip(jobs_found, changes, strict=True)):
        if change.children and answers[place].verdict == "done" and not add_children(tx, row, job, change):
            answers[place] = Answer("refused", job.state)
    allowed = [
        (job, change)
        for job, change, answer in zip(jobs_found, changes, answers, strict=True)
        if answer.verdict == "done"
    ]
    jobs: list[tuple[str, Detail]] = [
        (change.id, {"progress": msgspec.Raw(change.progress)}) for _, change in allowed if change.progress is not None
    ]
    if jobs:
        row.announce("progress", now, jobs=jobs)
    # The last of several changes of one job stands; each is announced.
    if data := {job.seq: change.data for job, change in allowed if change.data is not None}:
        tx.run(_SQL["data"], {"changes": as_json(list(data.items()))})
        row.announce(
            "changed", now, jobs=[(change.id, {"data": True}) for _, change in allowed if change.data is not None]
        )
    if logging := [(job, change) for job, change in allowed if change.log]:
        _log(tx, logging, now)
    _judge_otherwise(tx, allowed)
    if markings := [(job, change.marking) for job, change in allowed if change.marking is not None]:
        _note(tx, allowed, write_marks(tx, row, markings, now))
        promote_awaiting(tx, row, allowed, now)
    else:
        _note(tx, allowed)
    return answers


def _judge_otherwise(tx: Transaction, changes: Sequence[tuple[LocatedJob, JobUpdate]]) -> None:
    """Writes what decides whether a job that stalls is given up."""
    if alone := {job.seq: change.alone for job, change in changes if change.alone is not None}:
        tx.run(_SQL["alone"], {"changes": as_json(list(alone.items()))})
    if further := [job.seq for job, change in changes if change.clears_stalls]:
        tx.run(_SQL["clear_stalls"], {"seqs": as_json(further)})


def _find(tx: Transaction, row: QueueRow, changes: Sequence[JobUpdate]) -> list[LocatedJob]:
    return locate(tx, row, [change.id for change in changes]) if changes else []


def _may_promote_repeated(changes: Sequence[JobUpdate]) -> bool:
    """True if a mark may promote a job of which there is another change."""
    if not any(change.marking is not None and change.token is None for change in changes):
        return False
    return len({change.id for change in changes}) < len(changes)


def _log(tx: Transaction, changes: Sequence[tuple[LocatedJob, JobUpdate]], now: int) -> None:
    lines: list[tuple[int, int, str]] = []
    kept: dict[int, int] = {}
    for job, change in changes:
        lines += [(job.seq, number, text) for number, text in enumerate(change.log, job.logged + 1)]
        job.logged += len(change.log)
        kept[job.seq] = job.logged - change.keep_logs + 1
    tx.run(_SQL["append_log"], {"now": now, "lines": as_json(lines)})
    tx.run(_SQL["trim_log"], {"kept": as_json(list(kept.items()))})


def _note(
    tx: Transaction, changes: Sequence[tuple[LocatedJob, JobUpdate]], marked: AbstractSet[int] = frozenset()
) -> None:
    """Writes progress, the number of lines ever logged, and what jobs have, by the table that each job is in.

    `marked` are those that have marks since now.
    """
    notes: defaultdict[str, dict[int, tuple[int, str | None, int, int]]] = defaultdict(dict)
    for job, change in changes:
        assert job.state is not None, "a missing job is not allowed to change"
        if change.progress is not None or change.log or job.seq in marked:
            there = notes[TABLES[job.state]]
            progress = change.progress
            if progress is None and job.seq in there:
                progress = there[job.seq][1]
            there[job.seq] = job.seq, progress, job.logged, job.has
    for table, there in notes.items():
        tx.run(_SQL[f"note_{table}"], {"notes": as_json(list(there.values()))})


def _under_token(job: LocatedJob, token: str) -> Answer:
    if job.state is None:
        return MISSING
    held = job.state == "active" and job.token == token
    return Answer("done" if held else "lost", job.state)


def _may_change(job: LocatedJob, change: JobUpdate) -> Answer:
    if change.token is not None:
        return _under_token(job, change.token)
    if job.state is None:
        return MISSING
    return Answer("refused" if job.state in FINAL else "done", job.state)
