"""renew and update: what running handlers report."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

import msgspec

from ...job.instants import Milliseconds
from ...job.states import FINAL
from ...store.values import MISSING, Answer, JobUpdate, Lock
from .places import TABLES, Place, find_places
from .statements import statements
from .transaction import Detail, Transaction, as_json

_RENEW: Final = statements("renew")["renew"]
_SQL: Final = statements("update")


def renew(tx: Transaction, queue: str, locks: Sequence[Lock], lock: Milliseconds) -> list[Answer]:
    row = tx.queue(queue)
    now = tx.now()
    places = find_places(tx, row, [held.id for held in locks])
    answers = [_under_token(place, held.token) for place, held in zip(places, locks, strict=True)]
    seqs = [place.seq for place, answer in zip(places, answers, strict=True) if answer.verdict == "done"]
    if seqs:
        tx.run(_RENEW, {"seqs": as_json(seqs), "now": now, "lock_until": now + lock})
    return answers


def update(tx: Transaction, queue: str, changes: Sequence[JobUpdate]) -> list[Answer]:
    row = tx.queue(queue)
    now = tx.now()
    places = find_places(tx, row, [change.id for change in changes])
    answers = [_may_change(place, change) for place, change in zip(places, changes, strict=True)]
    allowed = [
        (place, change)
        for place, change, answer in zip(places, changes, answers, strict=True)
        if answer.verdict == "done"
    ]
    jobs: list[tuple[str, Detail]] = [
        (change.id, {"progress": msgspec.Raw(change.progress)}) for _, change in allowed if change.progress is not None
    ]
    if jobs:
        row.announce("progress", now, jobs=jobs)
    # The last of several changes of one job stands; each is announced.
    if data := {place.seq: change.data for place, change in allowed if change.data is not None}:
        tx.run(_SQL["data"], {"changes": as_json(list(data.items()))})
        row.announce(
            "changed", now, jobs=[(change.id, {"data": True}) for _, change in allowed if change.data is not None]
        )
    if logging := [(place, change) for place, change in allowed if change.log]:
        _log(tx, logging, now)
    if marks := {place.seq: change.alone for place, change in allowed if change.alone is not None}:
        tx.run(_SQL["mark"], {"marks": as_json(list(marks.items()))})
    _note(tx, allowed)
    return answers


def _log(tx: Transaction, changes: Sequence[tuple[Place, JobUpdate]], now: int) -> None:
    lines: list[tuple[int, int, str]] = []
    kept: dict[int, int] = {}
    for place, change in changes:
        lines += [(place.seq, number, text) for number, text in enumerate(change.log, place.logged + 1)]
        place.logged += len(change.log)
        kept[place.seq] = place.logged - change.keep_logs + 1
    tx.run(_SQL["append_log"], {"now": now, "lines": as_json(lines)})
    tx.run(_SQL["trim_log"], {"kept": as_json(list(kept.items()))})


def _note(tx: Transaction, changes: Sequence[tuple[Place, JobUpdate]]) -> None:
    """Writes progress, and how many lines were ever logged, where each job stands."""
    notes: defaultdict[str, dict[int, tuple[int, str | None, int]]] = defaultdict(dict)
    for place, change in changes:
        assert place.state is not None, "a missing job is not allowed to change"
        if change.progress is not None or change.log:
            there = notes[TABLES[place.state]]
            progress = change.progress
            if progress is None and place.seq in there:
                progress = there[place.seq][1]
            there[place.seq] = place.seq, progress, place.logged
    for table, there in notes.items():
        tx.run(_SQL[f"note_{table}"], {"notes": as_json(list(there.values()))})


def _under_token(place: Place, token: str) -> Answer:
    if place.state is None:
        return MISSING
    held = place.state == "active" and place.token == token
    return Answer("done" if held else "lost", place.state)


def _may_change(place: Place, change: JobUpdate) -> Answer:
    if change.token is not None:
        return _under_token(place, change.token)
    if place.state is None:
        return MISSING
    return Answer("refused" if place.state in FINAL else "done", place.state)
