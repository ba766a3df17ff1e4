"""Promotion of delayed jobs, by claims, ticks and the verb promote."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from ...job.instants import Instant
from ...store.values import BATCH
from .decoding import decoder
from .locating import delete_state_rows
from .statements import statements
from .transaction import QueueRow, Transaction, as_json

_SQL: Final = statements("promote")
_due: Final[Callable[[bytes], list[tuple[int, str]]]] = decoder(list[tuple[int, str]])


def promote_due(tx: Transaction, row: QueueRow, now: Instant) -> int:
    """Promotes at most `BATCH` jobs whose delay has ended."""
    if not row.counts["delayed"]:
        return 0
    due = _due(tx.get(_SQL["due"], {"queue": row.id, "now": now, "limit": BATCH}))
    if due:
        promote(tx, row, due, now)
    return len(due)


def promote(tx: Transaction, row: QueueRow, jobs: Sequence[tuple[int, str]], now: Instant) -> None:
    seqs = [seq for seq, _ in jobs]
    tx.run(_SQL["wait"], {"seqs": as_json(seqs)})
    delete_state_rows(tx, "delayed", seqs)
    row.move("delayed", "waiting", len(jobs))
    row.announce("promote", now, "waiting", [(id, None) for _, id in jobs])
    tx.wake("jobs", row)
