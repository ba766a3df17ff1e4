"""retry: finished jobs wait again, and parents with the children by which they failed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Final, TypeAlias

import msgspec
from msgspec.structs import replace

from ...job.flows import ChildState
from ...job.instants import Instant
from ...job.marks import Marking
from ...job.states import FINAL, State
from ...store.commands import Retry
from ...store.values import Answer
from .decoding import decoder
from .families import Notes, families_of, read_families
from .locating import delete_state_rows, grouped, locate, reach
from .marking import write_marks
from .placeholders import HAS_CHILDREN
from .statements import statements
from .transaction import QueueRow, Transaction, as_json
from .verbs import writes

_SQL: Final = statements("retry")
_BROKEN: Final = statements("flows")["broken"]


class Finished(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A finished job that is to wait again."""

    seq: int
    id: str
    state: State
    has: int


class Broken(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A child by which its parent may have failed."""

    number: int
    queue: str
    seq: int
    id: str
    state: State
    has: int
    known: ChildState
    """What the parent knows of it."""


_broken: Final[Callable[[bytes], list[Broken]]] = decoder(list[Broken])
ByQueue: TypeAlias = defaultdict[str, dict[int, Finished]]


@writes(Retry)
def retry(tx: Transaction, queue: str, ids: Sequence[str], reset: bool, marking: Marking | None) -> list[Answer]:
    row = tx.queue(queue)
    now = tx.now()
    found = locate(tx, row, ids)
    if len(ids) > 1 and any(job.has & HAS_CHILDREN for job in found):
        # One by one: a parent may bring children back that are asked for, too.
        return [answer for id in ids for answer in retry(tx, queue, [id], reset, marking)]
    answers, reached = reach(found, FINAL, "waiting")
    again: dict[str, list[Finished]] = {}
    if reached:
        again[queue] = [Finished(job.seq, job.id, state, job.has) for job, state in reached]
        if marking is not None:
            # Before they wait: the rows of waiting jobs say whether they have marks.
            write_marks(tx, row, [(job, replace(marking, notices=())) for job, _ in reached], now)
    # A job with two parents may come twice.
    seen: set[int] = set()
    # Level by level, not by recursion: flows may be deep.
    while again:
        failed: ByQueue = defaultdict(dict)
        seen.update(job.seq for jobs in again.values() for job in jobs)
        for name, jobs in again.items():
            _retry(tx, tx.queue(name), jobs, failed, now, reset=reset)
        again = {
            name: fresh
            for name, jobs in failed.items()
            if (fresh := [job for job in jobs.values() if job.seq not in seen])
        }
    return answers


def _retry(
    tx: Transaction, row: QueueRow, jobs: Sequence[Finished], failed: ByQueue, now: Instant, *, reset: bool
) -> None:
    """Makes finished jobs of one queue wait again; adds the children that are to be retried with them to `failed`."""
    held = _await_again(tx, row, [job for job in jobs if job.has & HAS_CHILDREN], failed)
    targets: dict[State, list[Finished]] = {
        "waiting": [job for job in jobs if job.seq not in held],
        "waiting-children": [job for job in jobs if job.seq in held],
    }
    for target, group in targets.items():
        if not group:
            continue
        statement = _SQL["wait" if target == "waiting" else "wait_for_children"]
        tx.run(statement, {"seqs": as_json([job.seq for job in group]), "reset": reset})
        for state, those in grouped(group, attrgetter("state")).items():
            delete_state_rows(tx, state, [job.seq for job in those])
            row.move(state, target, len(those))
        row.announce("retry by hand", now, target, [(job.id, None) for job in group])
    tx.wake("jobs", row)


def _await_again(tx: Transaction, row: QueueRow, parents: Sequence[Finished], failed: ByQueue) -> set[int]:
    """Lets parents that were not released wait again for the children that failed.

    Returns the sequence numbers of the parents that have children to wait for.
    """
    if not parents:
        return set()
    ids = [family for family in families_of(tx, [(row.id, job.id) for job in parents]) if family is not None]
    families = read_families(tx, ids)
    notes = Notes()
    for family in families.values():
        if family.is_released:
            continue
        family.owed = None
        notes.change(family)
        # A child that completed since then is not waited for.
        broken = [child for child in _broken(tx.get(_BROKEN, {"family": family.id})) if child.state != "completed"]
        for child in broken:
            notes.await_again(family, child.number, child.known)
            if child.state in FINAL:
                failed[child.queue][child.seq] = Finished(child.seq, child.id, child.state, child.has)
    notes.write(tx)
    return {family.seq for family in families.values() if family.awaited and not family.is_released}
