"""Steps that several verbs share: promotion, the end of retention, removal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeAlias

from ...job.instants import Instant
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
    for statement in ("jobs", "failures", "log", "tags"):
        tx.run(_REMOVE[statement], seqs)
    for _, _, state in jobs:
        row.move(state, None)


def apply_retention(
    tx: Transaction, row: QueueRow, state: State, finished: Sequence[tuple[int, str, Retention]], now: Instant
) -> None:
    """What finishing these jobs (sequence number, id and how long each is kept) removes at once."""
    remove_all(tx, row, [(seq, id, state) for seq, id, keep in finished if keep.removes_at_once], now)
    counts = [keep.count for _, _, keep in finished if keep.count]
    if counts and row.counts[state] > min(counts):
        remove_all(tx, row, _beyond(tx, row, state, min(counts)), now)


def _beyond(tx: Transaction, row: QueueRow, state: State, count: int) -> list[Leaving]:
    """The oldest that are more than this count, without those that are kept for ever."""
    values = {"queue": row.id, "state": state, "count": count, "limit": BATCH}
    if tx.get(_REMOVE["has_kept"], values):
        return leaving(tx.get(_REMOVE["oldest_beyond"], values))
    values["limit"] = min(row.counts[state] - count, BATCH)
    return leaving(tx.get(_REMOVE["oldest_counted"], values))


def oldest_finished(tx: Transaction, row: QueueRow, state: State, until: Instant, limit: int) -> list[Leaving]:
    return leaving(
        tx.get(_REMOVE["oldest_finished"], {"queue": row.id, "state": state, "until": until, "limit": limit})
    )
