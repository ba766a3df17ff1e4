"""Running jobs get children, and wait for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...errors import InvalidOption
from ...store.values import JobUpdate
from .adding import add
from .ending import Ends
from .families import Notes, existing, families_of, read_families
from .founding import new_links, next_family
from .locating import LocatedJob, delete_state_rows
from .placeholders import HAS_CHILDREN
from .statements import statements
from .transaction import QueueRow, Transaction, as_json

_SQL: Final = statements("flows")
_DELAY: Final = statements("settle")["delay"]


def add_children(tx: Transaction, row: QueueRow, job: LocatedJob, update: JobUpdate) -> bool:
    """Adds children to an active job; False if one of their ids exists already, and then none is added."""
    if update.token is None:
        raise InvalidOption("children", "need the token of the job that gets them")
    [there] = families_of(tx, [(row.id, job.id)])
    family = there or next_family(tx)
    [added] = add(tx, [update.adds], adopted_by={(row.name, job.id): family})
    if any(one.verdict == "conflict" for one in added):
        return False
    if there is None:
        # The adds may have founded families of their own, under other numbers.
        founded = (family, row.id, job.id, 0, 0, None, True, None)
        tx.run(_SQL["found_families"], {"families": as_json([founded])})
        tx.run(_SQL["become_parent"], {"seq": job.seq, "family": family})
        tx.run(_SQL["become_active_parent"], {"seq": job.seq})
        job.has |= HAS_CHILDREN
    _link(tx, family, update)
    return True


def _link(tx: Transaction, id: int, update: JobUpdate) -> None:
    [family] = read_families(tx, [id]).values()
    asked = new_links(tx, id, 0, update.children)
    known = existing(tx, [(id, queue, child) for _, _, queue, child, _ in asked])
    fresh = [one for one in asked if (id, one[2], one[3]) not in known]
    links = [(id, number, *rest) for number, (_, _, *rest) in enumerate(fresh, family.numbered)]
    tx.run(_SQL["add_links"], {"links": as_json(links)})
    family.numbered += len(links)
    family.awaited += len(links)
    family.pending += len(links)
    notes = Notes()
    notes.change(family)
    notes.write(tx)


def await_children(ends: Ends, jobs: Sequence[LocatedJob]) -> set[int]:
    """Makes active jobs wait for their children; returns the sequence numbers of those that have to."""
    tx, row, now = ends.tx, ends.row, ends.now
    ids = [family for family in families_of(tx, [(row.id, job.id) for job in jobs]) if family is not None]
    families = [family for family in read_families(tx, ids).values() if family.awaited or family.owed]
    if not families:
        return set()
    seqs = [family.seq for family in families]
    tx.run(_DELAY, {"back": as_json([(seq, None, 0, None) for seq in seqs])})
    delete_state_rows(tx, "active", seqs)
    tx.forget_claimed(row, (family.parent for family in families))
    row.move("active", "waiting-children", len(seqs))
    row.announce("postpone", now, "waiting-children", [(family.parent, None) for family in families])
    tx.wake("jobs", row)
    for family in families:
        family.is_released, family.waits = False, True
    ends.begin_to_wait(families)
    return set(seqs)
