"""Families of the jobs that one call adds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from ...job.flows import Child, Parent, Policy
from ...job.record import NewJob
from .families import Link, existing, families_of
from .statements import statements
from .transaction import Transaction, as_json

_SQL: Final = statements("flows")

Key: TypeAlias = tuple[str, str]
"""Queue and id."""
Known: TypeAlias = set[tuple[Key, Key]]
"""Parents with children that they have."""


def next_family(tx: Transaction) -> int:
    return int(tx.get(_SQL["next_family"]))


class Founding:
    """The families of new parents. `adopted_by` has that of a running job that gets children."""

    def __init__(self, tx: Transaction, jobs: Iterable[NewJob], adopted_by: Mapping[Key, int]) -> None:
        self._parents = {(job.queue, job.id): job for job in jobs if job.children}
        first = max([next_family(tx), *(family + 1 for family in adopted_by.values())])
        self._families = {**{parent: first + n for n, parent in enumerate(self._parents)}, **adopted_by}
        self._encoded: dict[tuple[Parent, ...], str] = {}
        self._unlinked: dict[Key, Policy] = {}
        """Parents without links to their children, with the policy of these."""

    def family_of(self, job: NewJob) -> int | None:
        return self._families[job.queue, job.id] if job.children else None

    def named(self, parents: tuple[Parent, ...]) -> str | None:
        """Parents as the row of a child names them, in JSON."""
        if not parents:
            return None
        if parents not in self._encoded:
            families = self._families
            named = [(parent.queue, parent.id, families.get((parent.queue, parent.id))) for parent in parents]
            self._encoded[parents] = as_json(named)
        return self._encoded[parents]

    def leave_out_links(self, siblings: Sequence[NewJob]) -> int | None:
        """The family of jobs that are stored without links, and name it themselves; None if they need links.

        They do unless they are all children of their only parent, in their order, in one queue and with one policy.
        """
        parents = siblings[0].parents
        parent = self._parents.get((parents[0].queue, parents[0].id)) if len(parents) == 1 else None
        if parent is None or [child.id for child in parent.children] != [job.id for job in siblings]:
            return None
        policies: set[Policy] = {child.policy for child in parent.children}
        if len(policies) > 1 or {child.queue for child in parent.children} != {siblings[0].queue}:
            return None
        self._unlinked[parent.queue, parent.id] = policies.pop()
        return self._families[parent.queue, parent.id]

    def link_all(self) -> None:
        """Children were not stored as `leave_out_links` said."""
        self._unlinked = {}

    def store(self, tx: Transaction, jobs: Iterable[NewJob]) -> None:
        """Stores the families of those that have children."""
        families: list[tuple[int, int, str, int, int, int | None, bool, Policy | None]] = []
        links: list[tuple[int, int, int, str, str]] = []
        for job in jobs:
            if job.children:
                key = job.queue, job.id
                family, policy, number = self._families[key], self._unlinked.get(key), len(job.children)
                if policy is None:
                    own = new_links(tx, family, 0, job.children)
                    links += own
                    number = len(own)
                families.append((family, tx.queue(job.queue).id, job.id, number, job.delay, job.due_at, False, policy))
        if families:
            tx.run(_SQL["found_families"], {"families": as_json(families)})
        if links:
            tx.run(_SQL["add_links"], {"links": as_json(links)})


def new_links(
    tx: Transaction, family: int, first: int, children: Sequence[Child]
) -> list[tuple[int, int, int, str, str]]:
    """Links to children, numbered from `first` on, as they are stored. The first of two links to one child stands."""
    names, ids = {child.queue for child in children}, {child.id for child in children}
    if len(names) == 1 and len(ids) == len(children):
        queue = tx.queue(names.pop(), create=True).id
        return [(family, number, queue, child.id, child.policy) for number, child in enumerate(children, first)]
    unique = {(child.queue, child.id): child for child in reversed(children)}
    queues = {queue: tx.queue(queue, create=True).id for queue, _ in unique}
    return [
        (family, number, queues[child.queue], child.id, child.policy)
        for number, child in enumerate(reversed(unique.values()), first)
    ]


def is_self_contained(bundles: Iterable[Sequence[NewJob]]) -> bool:
    """True if the parents of all jobs are added in the same bundle."""
    for bundle in bundles:
        own = {(job.queue, job.id) for job in bundle if job.children}
        checked: tuple[Parent, ...] = ()
        for job in bundle:
            # Siblings share the tuple of their parents, and follow each other.
            if job.parents is checked:
                continue
            checked = job.parents
            if any((parent.queue, parent.id) not in own for parent in checked):
                return False
    return True


def known_children(tx: Transaction, jobs: Iterable[NewJob]) -> Known:
    """Which of some jobs their parents have as children already, though retention may have removed them."""
    pairs = [((parent.queue, parent.id), (job.queue, job.id)) for job in jobs for parent in job.parents]
    parents = list(dict.fromkeys(parent for parent, _ in pairs))
    families = dict(zip(parents, families_of(tx, [(tx.queue(queue).id, id) for queue, id in parents]), strict=True))
    asked: dict[Link, tuple[Key, Key]] = {}
    for parent, child in pairs:
        family = families[parent]
        if family is not None:
            asked[family, tx.queue(child[0]).id, child[1]] = parent, child
    return {asked[link] for link in existing(tx, list(asked))} if asked else set()
