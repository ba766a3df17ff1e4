"""renew and update: what running handlers report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from ...job.instants import Milliseconds
from ...job.states import FINAL
from ...store.values import MISSING, Answer, Change, Lock
from .places import Place, find_places
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


def update(tx: Transaction, queue: str, changes: Sequence[Change]) -> list[Answer]:
    row = tx.queue(queue)
    now = tx.now()
    places = find_places(tx, row, [change.id for change in changes])
    answers = [_may_change(place, change) for place, change in zip(places, changes, strict=True)]
    allowed = [
        (place, change)
        for place, change, answer in zip(places, changes, answers, strict=True)
        if answer.verdict == "done"
    ]
    # The last of several changes of one job stands; each is announced.
    if progress := {place.seq: change.progress for place, change in allowed if change.progress is not None}:
        tx.run(_SQL["progress"], {"changes": as_json(list(progress.items()))})
        jobs: list[tuple[str, Detail]] = [
            (change.id, {"progress": msgspec.Raw(change.progress)})
            for _, change in allowed
            if change.progress is not None
        ]
        row.announce("progress", now, jobs=jobs)
    if data := {place.seq: change.data for place, change in allowed if change.data is not None}:
        tx.run(_SQL["data"], {"changes": as_json(list(data.items()))})
        row.announce(
            "changed", now, jobs=[(change.id, {"data": True}) for _, change in allowed if change.data is not None]
        )
    if logging := [(place, change) for place, change in allowed if change.log]:
        _log(tx, logging, now)
    return answers


def _log(tx: Transaction, changes: Sequence[tuple[Place, Change]], now: int) -> None:
    lines: list[tuple[int, int, str]] = []
    logged: dict[int, tuple[int, int, int]] = {}
    for place, change in changes:
        lines += [(place.seq, number, text) for number, text in enumerate(change.log, place.logged + 1)]
        place.logged += len(change.log)
        logged[place.seq] = place.seq, place.logged, place.logged - change.keep_logs + 1
    tx.run(_SQL["append_log"], {"now": now, "lines": as_json(lines)})
    encoded = {"logged": as_json(list(logged.values()))}
    tx.run(_SQL["count_log"], encoded)
    tx.run(_SQL["trim_log"], encoded)


def _under_token(place: Place, token: str) -> Answer:
    if place.state is None:
        return MISSING
    held = place.state == "active" and place.token == token
    return Answer("done" if held else "lost", place.state)


def _may_change(place: Place, change: Change) -> Answer:
    if change.token is not None:
        return _under_token(place, change.token)
    if place.state is None:
        return MISSING
    return Answer("refused" if place.state in FINAL else "done", place.state)
