"""add: bundles of jobs, each whole or not at all."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Final, Literal, TypeAlias

import apsw

from ...job.instants import Instant
from ...job.record import NewJob
from ...store.commands import Add
from ...store.values import Added
from .deduping import Placing, give_back, take_free
from .founding import Founding, Key, Known, is_self_contained, known_children
from .storing import existing, known_ids, portions, store
from .transaction import MINUTE, Detail, QueueRow, Transaction
from .verbs import writes

_parents: Final = attrgetter("parents")
_children: Final = attrgetter("children")
_extras: Final = attrgetter("extras")
_NOBODY: Final[Mapping[Key, int]] = {}
_TAKEN: Final = (apsw.SQLITE_CONSTRAINT_UNIQUE, apsw.SQLITE_CONSTRAINT_PRIMARYKEY)
"""How SQLite says that an id is there already."""

Bundle: TypeAlias = Sequence[NewJob]
Bundles: TypeAlias = Sequence[Bundle]
Verdict: TypeAlias = Literal["created", "found", "conflict", "skipped"]
Existing: TypeAlias = dict[Key, tuple[str, str]]
"""Name and data of jobs, by queue and id."""
Acknowledged: TypeAlias = tuple[NewJob, Instant]
"""A job that was acknowledged from the inbox, with the instant of that."""


@writes(Add)
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
    if is_simple and len(portions(jobs)) == 1 and _store_new(tx, rows[jobs[0].queue], jobs, now, families):
        return all_created(bundles)
    known = _look_up(tx, rows, jobs)
    if families and not known and _is_whole(bundles, jobs):
        # Flows in several queues, as many are: nothing of them is there.
        for row in rows.values():
            for portion in portions([job for job in jobs if job.queue == row.name]):
                store(tx, row, portion, now, families, has_extras=False)
        families.store(tx, jobs)
        return all_created(bundles)
    linked = known_children(tx, jobs) if has_flows else set()
    placing = Placing(tx, rows, jobs, now, families)
    answers = [_add_bundle(bundle, known, linked, adopted_by.keys(), placing) for bundle in bundles]
    placing.store()
    # After all adds: a duplicate of a job in the same call must not be announced before that job.
    for row in rows.values():
        _announce_duplicates(row, bundles, answers, now)
    placing.conclude()
    return answers


def _is_whole(bundles: Bundles, jobs: Sequence[NewJob]) -> bool:
    """True for flows without extras, in which no id occurs twice."""
    if any(map(_extras, jobs)) or not is_self_contained(bundles):
        return False
    return len({(job.queue, job.id) for job in jobs}) == len(jobs)


def _store_new(tx: Transaction, row: QueueRow, jobs: Sequence[NewJob], now: Instant, families: Founding | None) -> bool:
    """Stores jobs of one queue if all ids and dedupe keys are free; otherwise nothing.

    Nearly always they are. The inserts find out by themselves, and then have stored nothing.
    """
    has_extras = any(map(_extras, jobs))
    keys = take_free(tx, row, jobs, now) if has_extras else []
    if keys is None:
        return False
    try:
        store(tx, row, jobs, now, families, has_extras=has_extras)
    except apsw.ConstraintError as refused:
        if getattr(refused, "extendedresult", None) not in _TAKEN:
            # A value that no column takes: the whole call is undone.
            raise
        give_back(tx, row, keys)
        if families:
            families.link_all()
        return False
    if families:
        families.store(tx, jobs)
    return True


def _add_bundle(
    bundle: Bundle, known: Existing, linked: Known, adopters: Collection[Key], placing: Placing
) -> list[Added]:
    """Judges a bundle by what exists, and places what is to be stored. That is added to `known`."""
    own: Existing = {}
    verdicts: list[Verdict] = [_verdict(job, known, own, linked, adopters) for job in bundle]
    if "conflict" in verdicts:
        verdicts = ["skipped" if verdict == "created" else verdict for verdict in verdicts]
        # What repeats a job of its own bundle is not there either.
        return [
            Added(job.id, "skipped" if verdict == "found" and (job.queue, job.id) not in known else verdict)
            for job, verdict in zip(bundle, verdicts, strict=True)
        ]
    dropped: set[Key] = set()
    answers: list[Added] = []
    for job, verdict in zip(bundle, verdicts, strict=True):
        added = placing.place(job, dropped) if verdict == "created" else Added(job.id, verdict)
        if added.verdict == "created":
            known[job.queue, job.id] = job.name, job.data
            linked.update(((job.queue, job.id), (child.queue, child.id)) for child in job.children)
        answers.append(added)
    return answers


def _announce_duplicates(row: QueueRow, bundles: Bundles, answers: Sequence[Sequence[Added]], now: Instant) -> None:
    found: list[tuple[str, Detail]] = []
    deduplicated: list[tuple[str, Detail]] = []
    for bundle, answered in zip(bundles, answers, strict=True):
        for job, added in zip(bundle, answered, strict=True):
            if job.queue != row.name:
                continue
            if added.verdict == "found":
                found.append((job.id, None))
            elif added.verdict == "deduplicated" and job.extras is not None and job.extras.dedupe is not None:
                deduplicated.append((added.id, {"key": job.extras.dedupe.key, "discarded": job.id}))
    if found:
        row.announce("duplicated", now, jobs=found)
    if deduplicated:
        row.announce("deduplicated", now, jobs=deduplicated)


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
    # Those of the inbox have neither parents nor children, and no extras but dedupe keys.
    jobs, instants = [job for job, _ in acknowledged], [at for _, at in acknowledged]
    has_extras = any(map(_extras, jobs))
    keys = take_free(tx, row, jobs, instants[-1]) if has_extras else []
    if keys is not None:
        try:
            store(tx, row, jobs, instants[-1], None, instants, has_extras=has_extras)
        except apsw.ConstraintError:
            give_back(tx, row, keys)
        else:
            return
    for job, at in acknowledged:
        tx.start_call(at)
        if job.extras is None or known_ids(tx, row, [job.id]):
            # It was added again, because an answer was lost.
            add(tx, [[job]])
        else:
            # It was acknowledged, so it is added even if its key is held: a power cut may have undone the end of the
            # holder, or a process that could not open the inbox took the key.
            take_free(tx, row, [job], at)
            store(tx, row, [job], at, None)


def _look_up(tx: Transaction, rows: dict[str, QueueRow], jobs: Sequence[NewJob]) -> Existing:
    known: Existing = {}
    for queue, row in rows.items():
        for id, name, data in existing(tx, row, list({job.id for job in jobs if job.queue == queue})):
            known[queue, id] = name, data
    return known


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
