"""add: bundles of jobs, each whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Final, Literal, TypeAlias

import apsw

from ...job.instants import LAST_INSTANT, Instant
from ...job.record import NewJob
from ...job.states import State
from ...store.values import Added
from .decoding import decoder
from .families import extras_of
from .founding import Founding, Key, Known, is_self_contained, known_children
from .statements import statements
from .transaction import MINUTE, Arrival, Detail, QueueRow, Transaction, as_json

_SQL: Final = statements("add")
_existing: Final[Callable[[bytes], list[tuple[str, str, str]]]] = decoder(list[tuple[str, str, str]])

MOST_AT_ONCE: Final = 100_000_000
"""Characters of data in one statement; SQLite's limit is 10^9 bytes of JSON."""

_parents: Final = attrgetter("parents")
_children: Final = attrgetter("children")
_NOBODY: Final[Mapping[Key, int]] = {}

Bundle: TypeAlias = Sequence[NewJob]
Bundles: TypeAlias = Sequence[Bundle]
Verdict: TypeAlias = Literal["created", "found", "conflict", "skipped"]
Existing: TypeAlias = dict[Key, tuple[str, str]]
"""Name and data of jobs, by queue and id."""
Later: TypeAlias = dict[int, Instant | None]
"""Due instants of delayed jobs by sequence number, and None for jobs that wait for children."""
Acknowledged: TypeAlias = tuple[NewJob, Instant]
"""A job that was acknowledged from the inbox, with the instant of that."""


def add(tx: Transaction, bundles: Bundles, *, adopted_by: Mapping[Key, int] = _NOBODY) -> list[list[Added]]:
    """Adds bundles of jobs; `adopted_by` has the family of a running job that gets them as children."""
    jobs = [job for bundle in bundles for job in bundle]
    if not jobs:
        return [[] for _ in bundles]
    rows = {queue: tx.queue(queue, create=True) for queue in dict.fromkeys(job.queue for job in jobs)}
    now = tx.now()
    has_flows = any(map(_parents, jobs)) or any(map(_children, jobs))
    families = Founding(tx, jobs, adopted_by) if has_flows else None
    is_simple = len(rows) == 1 and (not has_flows or is_self_contained(bundles))
    if is_simple and len(portions := _portions(jobs)) == 1:
        # Nearly always every id is new. The insert finds out by itself, and then nothing was stored.
        try:
            _store(tx, rows[jobs[0].queue], portions[0], now, families)
            if families:
                families.store(tx, jobs)
            return all_created(bundles)
        except apsw.ConstraintError:
            pass
    linked = known_children(tx, jobs) if has_flows else set()
    answers, created, found = _judge(bundles, _look_up(tx, rows, jobs), linked, adopted_by.keys())
    for queue, row in rows.items():
        for portion in _portions([job for job in created if job.queue == queue]):
            _store(tx, row, portion, now, families)
        if old := [(job.id, None) for job in found if job.queue == queue]:
            row.announce("duplicated", now, jobs=old)
    if families:
        families.store(tx, created)
    return answers


def all_created(bundles: Bundles) -> list[list[Added]]:
    return [[Added(job.id, "created") for job in bundle] for bundle in bundles]


def add_acknowledged(tx: Transaction, acknowledged: Sequence[Acknowledged]) -> None:
    """Adds jobs of the inbox, queue by queue: their order matters only within a queue."""
    for queue in dict.fromkeys(job.queue for job, _ in acknowledged):
        row = tx.queue(queue, create=True)
        own = [(job, at) for job, at in acknowledged if job.queue == queue]
        # By minutes, because metrics are; within one, all have a single entry among the events, at the last one's time.
        for _, portion in groupby(own, key=lambda one: one[1] // MINUTE):
            _add_acknowledged(tx, row, list(portion))


def _add_acknowledged(tx: Transaction, row: QueueRow, acknowledged: Sequence[Acknowledged]) -> None:
    try:
        # Those of the inbox have neither parents nor children.
        _store(tx, row, [job for job, _ in acknowledged], acknowledged[-1][1], None, [at for _, at in acknowledged])
    except apsw.ConstraintError:
        # Some were added again, because an answer was lost.
        for job, at in acknowledged:
            tx.start_call(at)
            add(tx, [[job]])


def _store(
    tx: Transaction,
    row: QueueRow,
    jobs: Sequence[NewJob],
    now: Instant,
    families: Founding | None,
    created_at: Sequence[Instant] | None = None,
) -> None:
    """Inserts new jobs and announces them. `created_at` has an instant for each; without it all are created now."""
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
            _insert_unlike(tx, row, jobs, first, created_at, families)
        else:
            _insert(tx, row, jobs, first, now, families)
        _enqueue(tx, len(jobs), first, later)
    if tagged := [(seq, job.tags) for seq, job in enumerate(jobs, first) if job.tags]:
        tx.run(_SQL["tags"], {"queue": row.id, "tags": as_json(tagged)})
    names: dict[str, Detail] = {job.name: {"name": job.name} for job in jobs}
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
    tx: Transaction, row: QueueRow, jobs: Sequence[NewJob], first: int, now: Instant, families: Founding | None
) -> None:
    if _are_alike(jobs, families):
        _insert_alike(tx, row, jobs, first, now, families)
    elif jobs[0].children and _are_alike(jobs[1:], families):
        # A parent before its children.
        _insert_unlike(tx, row, jobs[:1], first, [now], families)
        try:
            _insert_alike(tx, row, jobs[1:], first + 1, now, families)
        except apsw.ConstraintError:
            tx.run(_SQL["undo"], {"first": first})
            raise
    else:
        _insert_unlike(tx, row, jobs, first, [now] * len(jobs), families)


def _insert_unlike(
    tx: Transaction,
    row: QueueRow,
    jobs: Sequence[NewJob],
    first: int,
    created_at: Sequence[Instant],
    families: Founding | None,
) -> None:
    encoded: list[tuple[object, ...]] = [
        (job.id, job.name, job.options, job.data, job.priority, _order(job, seq), at, extras_of(job))
        for seq, (job, at) in enumerate(zip(jobs, created_at, strict=True), first)
    ]
    if families:
        encoded = [
            (*one, families.parents_of(job), families.family_of(job)) for one, job in zip(encoded, jobs, strict=True)
        ]
    tx.run(_SQL["jobs"], {"queue": row.id, "first": first, "jobs": as_json(encoded)})


def _insert_alike(
    tx: Transaction, row: QueueRow, jobs: Sequence[NewJob], first: int, now: Instant, families: Founding | None
) -> None:
    """Inserts jobs that differ only in ids and data."""
    any_job = jobs[0]
    values = {
        "queue": row.id,
        "first": first,
        "now": now,
        "name": any_job.name,
        "options": any_job.options,
        "priority": any_job.priority,
        "sign": -1 if any_job.lifo else 1,
        "extras": extras_of(any_job),
        "parents": as_json(families.parents_of(any_job)) if families and any_job.parents else None,
        "jobs": as_json([(job.id, job.data) for job in jobs]),
    }
    tx.run(_SQL["jobs_alike"], values)


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
        "extras": extras_of(job),
        "parents": as_json(families.parents_of(job)) if families and job.parents else None,
        "family": families.family_of(job) if families else None,
    }
    tx.run(_SQL["job"], values)
    if later:
        tx.run(_SQL["later"], {"later": as_json(list(later.items()))})
    else:
        tx.arrive(Arrival(job, values))


def _are_alike(jobs: Sequence[NewJob], families: Founding | None) -> bool:
    """True if they differ only in ids, data and tags, and have no children."""
    if families and (any(map(_children, jobs)) or len(set(map(_parents, jobs))) > 1):
        return False
    return len({(job.name, job.options, job.priority, job.lifo, not job.tags) for job in jobs}) == 1


def _order(job: NewJob, seq: int) -> int:
    return -seq if job.lifo else seq


def _portions(jobs: Sequence[NewJob]) -> list[Sequence[NewJob]]:
    """Splits jobs into parts whose data fits into one statement; usually there is one."""
    if sum(len(job.data) for job in jobs) <= MOST_AT_ONCE:
        return [jobs] if jobs else []
    half = len(jobs) // 2
    return [*_portions(jobs[:half]), *_portions(jobs[half:])] if half else [jobs]


def _due_at(job: NewJob, now: Instant) -> Instant | None:
    if job.children:
        # Its delay begins when they have ended.
        return None
    if job.delay > 0:
        return min(now + job.delay, LAST_INSTANT)
    return job.due_at if job.due_at is not None and job.due_at > now else None


def _look_up(tx: Transaction, rows: dict[str, QueueRow], jobs: Sequence[NewJob]) -> Existing:
    known: Existing = {}
    for queue, row in rows.items():
        ids = list({job.id for job in jobs if job.queue == queue})
        for id, name, data in _existing(tx.get(_SQL["known"], {"queue": row.id, "ids": as_json(ids)})):
            known[queue, id] = name, data
    return known


def _judge(
    bundles: Bundles, known: Existing, linked: Known, adopters: Collection[Key]
) -> tuple[list[list[Added]], list[NewJob], list[NewJob]]:
    """Judges bundles by what exists: answers, jobs to store and jobs found. Jobs to store are added to `known`."""
    answers: list[list[Added]] = []
    created: list[NewJob] = []
    found: list[NewJob] = []
    for bundle in bundles:
        own: Existing = {}
        verdicts: list[Verdict] = [_verdict(job, known, own, linked, adopters) for job in bundle]
        if "conflict" in verdicts:
            verdicts = ["skipped" if verdict == "created" else verdict for verdict in verdicts]
            # What repeats a job of its own bundle is not there either.
            verdicts = [
                "skipped" if verdict == "found" and (job.queue, job.id) not in known else verdict
                for job, verdict in zip(bundle, verdicts, strict=True)
            ]
        else:
            known.update(own)
            new = [job for job, verdict in zip(bundle, verdicts, strict=True) if verdict == "created"]
            linked.update(((job.queue, job.id), (child.queue, child.id)) for job in new for child in job.children)
            created += new
        found += [job for job, verdict in zip(bundle, verdicts, strict=True) if verdict == "found"]
        answers.append([Added(job.id, verdict) for job, verdict in zip(bundle, verdicts, strict=True)])
    return answers, created, found


def _verdict(job: NewJob, known: Existing, own: Existing, linked: Known, adopters: Collection[Key]) -> Verdict:
    key = job.queue, job.id
    there = known.get(key) or own.get(key)
    if job.parents:
        # A parent that was there before is found as it is, with the children that it has, which may be gone by now.
        parents = [(parent.queue, parent.id) for parent in job.parents]
        are_new = {parent in own or (parent in adopters and (parent, key) not in linked) for parent in parents}
        if are_new == {False}:
            return "found"
        if there is not None or are_new != {True}:
            return "conflict"
    if there is None:
        own[key] = job.name, job.data
        return "created"
    return "found" if there == (job.name, job.data) else "conflict"
