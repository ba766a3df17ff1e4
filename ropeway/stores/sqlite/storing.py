"""Stores new jobs of one queue: their rows, where they wait, and what announces them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from itertools import groupby
from operator import attrgetter
from typing import Final, TypeAlias

import apsw

from ...job.instants import LAST_INSTANT, Instant
from ...job.record import NewJob
from ...job.states import State
from .deadlines import add_deadlines
from .decoding import decoder
from .families import bits_of
from .founding import Founding
from .placeholders import HAS_DEADLINE, HAS_PARENTS
from .statements import statements
from .transaction import Arrival, Detail, QueueRow, Transaction, as_json

_SQL: Final = statements("add")
_existing: Final[Callable[[bytes], list[tuple[str, str, str]]]] = decoder(list[tuple[str, str, str]])

MOST_AT_ONCE: Final = 100_000_000
"""Characters of data in one statement; SQLite's limit is 10^9 bytes of JSON."""

_parents: Final = attrgetter("parents")
_children: Final = attrgetter("children")
_tags: Final = attrgetter("tags")
_PLAIN: Final[AbstractSet[int]] = frozenset()
"""The bits of jobs of which none has extras are not looked at."""
_shared: Final = attrgetter("name", "options", "priority", "lifo")
_placed: Final = attrgetter("options", "priority", "lifo")

Later: TypeAlias = dict[int, Instant | None]
"""Due instants of delayed jobs by sequence number, and None for jobs that wait for children."""


def known_ids(tx: Transaction, row: QueueRow, ids: Sequence[str]) -> set[str]:
    """Those of some ids that jobs have."""
    return {id for id, _, _ in existing(tx, row, ids)}


def existing(tx: Transaction, row: QueueRow, ids: Sequence[str]) -> list[tuple[str, str, str]]:
    """Id, name and data of the jobs with some ids that there are."""
    return _existing(tx.get(_SQL["known"], {"queue": row.id, "ids": as_json(ids)}))


def store(
    tx: Transaction,
    row: QueueRow,
    jobs: Sequence[NewJob],
    now: Instant,
    families: Founding | None,
    created_at: Sequence[Instant] | None = None,
    *,
    has_extras: bool = True,
) -> None:
    """Inserts new jobs and announces them.

    `created_at` has an instant for each; without it all are created now. `has_extras` is False if none has any.
    """
    kinds = set(map(bits_of, jobs)) if has_extras else _PLAIN
    first = tx.take_seqs(len(jobs))
    later: Later = {
        seq: due_at
        for seq, job in enumerate(jobs, first)
        if (job.delay or job.due_at) and (due_at := _due_at(job, now)) is not None
    }
    if families:
        later |= {seq: None for seq, job in enumerate(jobs, first) if job.children}
    if len(jobs) == 1:
        _insert_one(tx, row, jobs[0], first, later, now, families)
    else:
        if created_at is not None:
            _insert_unlike(tx, row, jobs, first, created_at, families, kinds)
        else:
            _insert(tx, row, jobs, first, now, families, kinds)
        _enqueue(tx, len(jobs), first, later)
    if any(map(_tags, jobs)):
        tagged = [(seq, job.tags) for seq, job in enumerate(jobs, first) if job.tags]
        tx.run(_SQL["tags"], {"queue": row.id, "tags": as_json(tagged)})
    if any(kind & HAS_DEADLINE for kind in kinds):
        _store_deadlines(tx, row, jobs, first, now)
    names: dict[str, Detail] = {name: {"name": name} for name in {job.name for job in jobs}}
    added: dict[State, list[tuple[str, Detail]]] = {
        "waiting": [(job.id, names[job.name]) for seq, job in enumerate(jobs, first) if seq not in later],
        "delayed": [],
        "waiting-children": [],
    }
    for seq, due_at in later.items():
        job = jobs[seq - first]
        if due_at is None:
            added["waiting-children"].append((job.id, names[job.name]))
        else:
            added["delayed"].append((job.id, {"name": job.name, "due_at": due_at}))
    for state, those in added.items():
        if those:
            row.move(None, state, len(those))
            row.announce("add", now, state, those)
    tx.wake("jobs", row)


def _insert(
    tx: Transaction,
    row: QueueRow,
    jobs: Sequence[NewJob],
    first: int,
    now: Instant,
    families: Founding | None,
    kinds: AbstractSet[int],
) -> None:
    if _are_alike(jobs, families, kinds):
        _insert_alike(tx, row, jobs, first, now, families)
    elif jobs[0].children and _are_alike(jobs[1:], families, kinds and set(map(bits_of, jobs[1:]))):
        # A parent before its children.
        _insert_unlike(tx, row, jobs[:1], first, [now], families, kinds)
        try:
            _insert_alike(tx, row, jobs[1:], first + 1, now, families)
        except apsw.ConstraintError:
            tx.run(_SQL["undo"], {"first": first})
            raise
    elif families and not kinds and len(set(map(_placed, jobs))) == 1:
        _insert_flows(tx, row, jobs, first, now, families)
    else:
        _insert_unlike(tx, row, jobs, first, [now] * len(jobs), families, kinds)


def _insert_flows(
    tx: Transaction, row: QueueRow, jobs: Sequence[NewJob], first: int, now: Instant, families: Founding
) -> None:
    """Inserts jobs of flows that have the same options and priority, and no extras."""
    any_job = jobs[0]
    encoded: list[tuple[object, ...]] = []
    # Siblings follow each other.
    for parents, group in groupby(jobs, _parents):
        siblings = [*group]
        named, child_of, has = (
            families.named(parents),
            families.leave_out_links(siblings),
            HAS_PARENTS if parents else 0,
        )
        encoded += [
            (job.id, job.name, job.data, bits_of(job), named, child_of, child_of and number, families.family_of(job))
            if job.children or job.tags
            else (job.id, job.name, job.data, has, named, child_of, child_of and number)
            for number, job in enumerate(siblings)
        ]
    values = {
        "queue": row.id,
        "first": first,
        "now": now,
        "options": any_job.options,
        "priority": any_job.priority,
        "sign": -1 if any_job.lifo else 1,
        "jobs": as_json(encoded),
    }
    tx.run(_SQL["jobs_of_flows"], values)


def _insert_unlike(
    tx: Transaction,
    row: QueueRow,
    jobs: Sequence[NewJob],
    first: int,
    created_at: Sequence[Instant],
    families: Founding | None,
    kinds: AbstractSet[int],
) -> None:
    encoded: list[tuple[object, ...]] = [
        (job.id, job.name, job.options, job.data, job.priority, _order(job, seq), at, bits_of(job))
        for seq, (job, at) in enumerate(zip(jobs, created_at, strict=True), first)
    ]
    if families or kinds:
        encoded = [_with_rare(one, job, families) for one, job in zip(encoded, jobs, strict=True)]
    tx.run(_SQL["jobs"], {"queue": row.id, "first": first, "jobs": as_json(encoded)})


def _with_rare(encoded: tuple[object, ...], job: NewJob, families: Founding | None) -> tuple[object, ...]:
    """Adds parents, family and extras; those at the end that a job does not have may be missing."""
    parents = families.named(job.parents) if families else None
    if job.extras is None and not job.children:
        return encoded if parents is None else (*encoded, parents)
    return *encoded, parents, families.family_of(job) if families else None, job.extras


def _insert_alike(
    tx: Transaction, row: QueueRow, jobs: Sequence[NewJob], first: int, now: Instant, families: Founding | None
) -> None:
    """Inserts jobs that differ only in ids, data and extras."""
    any_job = jobs[0]
    has_extras = any_job.extras is not None
    encoded = [(job.id, job.data, job.extras) for job in jobs] if has_extras else [(job.id, job.data) for job in jobs]
    values = {
        "queue": row.id,
        "first": first,
        "now": now,
        "name": any_job.name,
        "options": any_job.options,
        "priority": any_job.priority,
        "sign": -1 if any_job.lifo else 1,
        "has": bits_of(any_job),
        "parents": families.named(any_job.parents) if families else None,
        "jobs": as_json(encoded),
    }
    if families and not has_extras and (family := families.leave_out_links(jobs)) is not None:
        tx.run(_SQL["siblings"], {**values, "family": family})
    else:
        tx.run(_SQL["jobs_alike_with_extras" if has_extras else "jobs_alike"], values)


def _enqueue(tx: Transaction, number: int, first: int, later: Later) -> None:
    if later:
        tx.run(_SQL["later"], {"later": as_json(list(later.items()))})
    if len(later) < number:
        tx.run(_SQL["waiting"], {"first": first})


def _insert_one(
    tx: Transaction, row: QueueRow, job: NewJob, seq: int, later: Later, now: Instant, families: Founding | None
) -> None:
    """Inserts one job, without JSON in between."""
    values = {
        "seq": seq,
        "queue": row.id,
        "id": job.id,
        "name": job.name,
        "options": job.options,
        "data": job.data,
        "priority": job.priority,
        "ord": _order(job, seq),
        "now": now,
        "has": bits_of(job),
        "parents": families.named(job.parents) if families else None,
        "family": families.family_of(job) if families else None,
        "extras": None if job.extras is None else as_json(job.extras),
    }
    tx.run(_SQL["job"], values)
    if later:
        tx.run(_SQL["later"], {"later": as_json(list(later.items()))})
    else:
        tx.arrive(Arrival(job, values))


def _store_deadlines(tx: Transaction, row: QueueRow, jobs: Sequence[NewJob], first: int, now: Instant) -> None:
    deadlines = [
        (seq, deadline)
        for seq, job in enumerate(jobs, first)
        if job.extras is not None and (deadline := job.extras.deadline(now)) is not None
    ]
    add_deadlines(tx, row, deadlines)


def _are_alike(jobs: Sequence[NewJob], families: Founding | None, kinds: AbstractSet[int]) -> bool:
    """True if they differ only in ids, data, tags and extras, have the same kinds of these, and no children."""
    if families and (any(map(_children, jobs)) or len(set(map(_parents, jobs))) > 1):
        return False
    return len(set(map(_shared, jobs))) == 1 and len(kinds or set(map(bool, map(_tags, jobs)))) == 1


def _order(job: NewJob, seq: int) -> int:
    return -seq if job.lifo else seq


def portions(jobs: Sequence[NewJob]) -> list[Sequence[NewJob]]:
    """Splits jobs into parts whose data fits into one statement; usually there is one."""
    if sum(len(job.data) for job in jobs) <= MOST_AT_ONCE:
        return [jobs] if jobs else []
    half = len(jobs) // 2
    return [*portions(jobs[:half]), *portions(jobs[half:])] if half else [jobs]


def state_of(job: NewJob, now: Instant) -> State:
    """The state in which a new job is stored."""
    if job.children:
        return "waiting-children"
    return "waiting" if _due_at(job, now) is None else "delayed"


def _due_at(job: NewJob, now: Instant) -> Instant | None:
    if job.children:
        # Its delay begins when they have ended.
        return None
    if job.delay > 0:
        return min(now + job.delay, LAST_INSTANT)
    return job.due_at if job.due_at is not None and job.due_at > now else None
