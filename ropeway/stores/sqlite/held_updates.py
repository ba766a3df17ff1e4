"""Updates of progress and marks by the process that holds the jobs, which it makes by the hundred.

A general update first reads each job and compares its token. These need not: one statement compares tokens and writes,
for all jobs that report alike. What it does not reach is looked at afterwards, for the answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ...job.instants import Instant
from ...job.marks import Marking, Notice
from ...store.values import JobUpdate
from .marking import insert_marks
from .placeholders import HAS_MARKS
from .statements import statements
from .transaction import QueueRow, Transaction, as_json

_SQL: Final = statements("update")
_NOTHING: Final = Marking()


def held_here(tx: Transaction, row: QueueRow, changes: Sequence[JobUpdate]) -> Mapping[str, int] | None:
    """Sequence numbers by id, if all these updates can be made together: each is of another job, claimed here."""
    if len(changes) < 2 or any(map(_is_unusual, changes)):
        return None
    claimed = tx.seqs_of_claimed(row, [change.id for change in changes])
    return {id: seq for seq, id in claimed.items()} if len(claimed) == len(changes) else None


def update_held(
    tx: Transaction, row: QueueRow, changes: Sequence[JobUpdate], seqs: Mapping[str, int], now: Instant
) -> set[str]:
    """Makes the updates whose tokens hold their jobs; returns the ids of these."""
    # Notices by their identity: jobs in one phase of a pipeline share them, whatever the results of the phase.
    groups: dict[tuple[str | None, str | None, int, bool], dict[int, JobUpdate]] = {}
    for change in changes:
        marking = change.marking or _NOTHING
        alike = change.token, change.progress, id(marking.notices), bool(marking.marks)
        groups.setdefault(alike, {})[seqs[change.id]] = change
    reached: set[str] = set()
    for group in groups.values():
        reached.update(_update_alike(tx, row, group, now))
    return reached


def _update_alike(tx: Transaction, row: QueueRow, group: Mapping[int, JobUpdate], now: Instant) -> list[str]:
    """Updates jobs of one token with the same progress and notices, by sequence number; returns ids of those held."""
    first = next(iter(group.values()))
    marking = first.marking or _NOTHING
    asked = as_json([*group])
    has = HAS_MARKS if marking.marks else 0
    held = tx.get_all(_SQL["note_held"], {"seqs": asked, "token": first.token, "progress": first.progress, "has": has})
    ids = [group[seq].id for seq in held]
    if not ids:
        return []
    notices = marking.notices
    if first.progress is not None:
        notices = Notice("progress", f'{{"progress":{first.progress}}}'), *notices
    row.announce_alike(notices, now, ids)
    if marking.marks:
        tx.run(_SQL["note_marks"], {"seqs": asked if len(held) == len(group) else as_json(held)})
        insert_marks(tx, [(seq, group[seq].marking or _NOTHING) for seq in held], now)
    return ids


def _is_unusual(change: JobUpdate) -> bool:
    return bool(
        change.token is None
        or change.data is not None
        or change.alone is not None
        or change.clears_stalls
        or change.log
        or change.children
        or (change.marking is not None and change.marking.forgets)
    )
