"""Steps that several verbs share: promotion, the end of retention, removal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeAlias

from ...job.instants import LAST_INSTANT, Instant
from ...job.retention import Retention
from ...job.states import State
from ...store.values import BATCH, RevokedLock
from .places import leave
from .reading import reader
from .statements import statements
from .transaction import QueueRow, Transaction, as_json

_PROMOTE: Final = statements("promote")
_REMOVE: Final = statements("remove")
_REVOKE: Final = statements("cancel")["revoke"]
_due: Final[Callable[[bytes], list[tuple[int, str]]]] = reader(list[tuple[int, str]])

Leaving: TypeAlias = tuple[int, str, State]
"""Sequence number, id and state of a job that is to be removed."""
leaving: Final[Callable[[bytes], list[Leaving]]] = reader(list[Leaving])


def promote_due(tx: Transaction, row: QueueRow, now: Instant) -> int:
    """Promotes at most `BATCH` jobs whose delay has ended."""
    if not row.counts["delayed"]:
        return 0
    due = _due(tx.get(_PROMOTE["due"], {"queue": row.id, "now": now, "limit": BATCH}))
    if due:
        promote(tx, row, due, now)
    return len(due)


def promote(tx: Transaction, row: QueueRow, jobs: Sequence[tuple[int, str]], now: Instant) -> None:
    tx.run(_PROMOTE["wait"], {"seqs": as_json([seq for seq, _ in jobs])})
    leave(tx, [(seq, "delayed") for seq, _ in jobs])
    row.move("delayed", "waiting", len(jobs))
    row.announce("promote", now, "waiting", [(id, None) for _, id in jobs])
    tx.wake("jobs", row)


def revoke(tx: Transaction, row: QueueRow, locks: Iterable[RevokedLock], now: Instant) -> None:
    if encoded := [(lock.id, lock.token, lock.why) for lock in locks]:
        tx.run(_REVOKE, {"queue": row.id, "now": now, "locks": as_json(encoded)})
        tx.wake("revoked", row)


def remove_all(tx: Transaction, row: QueueRow, jobs: Sequence[Leaving], now: Instant) -> None:
    """Removes jobs with everything about them, and says so."""
    if not jobs:
        return
    erase(tx, row, jobs)
    row.announce("remove", now, None, [(id, {"prev": state}) for _, id, state in jobs])


def erase(tx: Transaction, row: QueueRow, jobs: Sequence[Leaving]) -> None:
    leave(tx, [(seq, state) for seq, _, state in jobs])
    seqs = {"seqs": as_json([seq for seq, _, _ in jobs])}
    for statement in ("jobs", "failures", "log"):
        tx.run(_REMOVE[statement], seqs)
    for _, _, state in jobs:
        row.move(state, None)


def apply_retention(
    tx: Transaction, row: QueueRow, state: State, finished: Sequence[tuple[int, str, Retention]], now: Instant
) -> None:
    """What finishing these jobs (sequence number, id and how long each is kept) removes at once."""
    remove_all(tx, row, [(seq, id, state) for seq, id, keep in finished if keep.removes_at_once], now)
    counts = [keep.count for _, _, keep in finished if keep.count]
    beyond = row.counts[state] - min(counts) if counts else 0
    if beyond > 0:
        remove_all(tx, row, oldest_finished(tx, row, state, LAST_INSTANT, min(beyond, BATCH)), now)


def oldest_finished(tx: Transaction, row: QueueRow, state: State, until: Instant, limit: int) -> list[Leaving]:
    return leaving(
        tx.get(_REMOVE["oldest_finished"], {"queue": row.id, "state": state, "until": until, "limit": limit})
    )
