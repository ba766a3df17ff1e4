"""The instants by which jobs have to be started.

The queue's row says before which instant no job expires, so a queue without such jobs costs a claim no statement. That
instant is made earlier when jobs are added, and set right when it has come: claims, ends and removals leave it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...job.instants import Instant
from .statements import statements
from .transaction import QueueRow, Transaction, as_json

_SQL: Final = statements("deadlines")


def add_deadlines(tx: Transaction, row: QueueRow, deadlines: Sequence[tuple[int, Instant]]) -> None:
    """Adds those of new jobs, given by sequence number."""
    tx.run(_SQL["add"], {"queue": row.id, "deadlines": as_json(deadlines)})
    first = min(at for _, at in deadlines)
    if row.first_deadline is None or first < row.first_deadline:
        _note_first(tx, row, first)


def remove_deadlines(tx: Transaction, row: QueueRow, seqs: Sequence[int]) -> None:
    """Removes those that jobs still have."""
    if seqs and row.first_deadline is not None:
        tx.run(_SQL["remove"], {"seqs": as_json(seqs)})


def correct_first_deadline(tx: Transaction, row: QueueRow) -> None:
    """Sets the instant in the queue's row right."""
    if row.first_deadline is not None:
        first: Instant | None = tx.get(_SQL["first"], {"queue": row.id})
        if first != row.first_deadline:
            _note_first(tx, row, first)


def _note_first(tx: Transaction, row: QueueRow, at: Instant | None) -> None:
    row.first_deadline = at
    tx.run(_SQL["note_first"], {"queue": row.id, "at": at})
