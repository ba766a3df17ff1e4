"""Families: parents, and what they know of their children.

A child's row names its parents with their families. A parent's family counts how its children are, so that the end of
one child costs the same however many there are. Plain jobs have neither, and their `has` says so.

A link is what a family knows of one child. Children that are stored behind their only parent, as those of most flows,
have none before they end: their rows have the family and their number there (`child_of`, `child_number`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

import msgspec

from ...job.codec import JsonText
from ...job.flows import EFFECTS, ENDS, OWED, ChildEnd, ChildState, Effect, Policy, is_awaited, reason_for_parents
from ...job.instants import Instant, Milliseconds
from ...job.record import NewJob
from .decoding import decoder
from .placeholders import (
    HAS_CHILDREN,
    HAS_DEAD_LETTER,
    HAS_DEADLINE,
    HAS_EXTRAS,
    HAS_KEY,
    HAS_PARENTS,
    HAS_SCHEDULE,
    HAS_TAGS,
    HAS_WEBHOOK,
)
from .statements import statements
from .transaction import QueueRow, Transaction, as_json

_SQL: Final = statements("flows")

Link: TypeAlias = tuple[int, int, str]
"""Family, and queue and id of a child."""
Told: TypeAlias = tuple[int, str, str | None, JsonText | None]
"""A job that ended: its sequence number, id, reason and result."""


class Family(msgspec.Struct, array_like=True):
    """The children of a job, and the parent itself."""

    id: int
    numbered: int
    awaited: int
    pending: int
    completed: int
    failed: int
    cancelled: int
    delay: Milliseconds
    due_at: Instant | None
    is_released: int
    owed: Effect | None
    owed_reason: str
    queue: str
    parent: str
    seq: int
    has: int
    options: str
    waits: int
    """Whether the parent waits for its children."""

    def count(self, state: ChildState, number: int) -> None:
        setattr(self, state, getattr(self, state) + number)


class News(NamedTuple):
    """The end of a child, for one of its parents."""

    family: int
    number: int
    """Which of the family's children it is."""
    policy: Policy
    state: ChildState
    """What the parent knew of it before."""
    ended: ChildEnd
    result: JsonText | None
    reason: str | None
    unlinked: tuple[int, str] | None
    """Queue and id of the child, if it has no link."""


_families: Final[Callable[[bytes], list[Family]]] = decoder(list[Family])
_links: Final[Callable[[bytes], list[tuple[int, int, int, Policy, ChildState, int]]]] = decoder(
    list[tuple[int, int, int, Policy, ChildState, int]]
)
_owned: Final[Callable[[bytes], list[tuple[int, int]]]] = decoder(list[tuple[int, int]])
_places: Final[Callable[[bytes], list[int]]] = decoder(list[int])


def bits_of(job: NewJob) -> int:
    """Bits that say what a new job has beside what every job has."""
    bits = HAS_PARENTS if job.parents else 0
    if job.tags:
        bits |= HAS_TAGS
    if job.children:
        bits |= HAS_CHILDREN
    extras = job.extras
    if extras is None:
        return bits
    bits |= HAS_EXTRAS
    if extras.dedupe is not None:
        bits |= HAS_KEY
    if extras.start_within is not None or extras.start_by is not None:
        bits |= HAS_DEADLINE
    if extras.dead_letter is not None:
        bits |= HAS_DEAD_LETTER
    if extras.schedule is not None:
        bits |= HAS_SCHEDULE
    if extras.webhook is not None and extras.webhook.events:
        bits |= HAS_WEBHOOK
    return bits


def read_families(tx: Transaction, ids: Iterable[int]) -> dict[int, Family]:
    found = _families(tx.get(_SQL["families"], {"families": as_json(list(ids))}))
    return {family.id: family for family in found}


def families_of(tx: Transaction, jobs: Sequence[tuple[int, str]]) -> list[int | None]:
    """Returns the family of each job, given by queue and id; None where there is none."""
    owned = dict(_owned(tx.get(_SQL["families_of"], {"jobs": as_json(jobs)})))
    return [owned.get(place) for place in range(len(jobs))]


def existing(tx: Transaction, links: Sequence[Link]) -> set[Link]:
    """Returns those of some links that there are."""
    return {links[place] for place in _places(tx.get(_SQL["linked"], {"links": as_json(links)}))}


def news_of(tx: Transaction, row: QueueRow, move: str, jobs: Sequence[Told]) -> list[News]:
    """What to tell the parents of jobs of one queue that ended by a move. Call it before the jobs are removed."""
    found = _links(tx.get(_SQL["links_of_children"], {"seqs": as_json([seq for seq, *_ in jobs])}))
    ended = ENDS[move]
    tells_why = ended in ("failed", "cancelled")
    news: list[News] = []
    for place, family, number, policy, state, has_link in found:
        _, id, reason, result = jobs[place]
        why = reason_for_parents(row.name, id, move, reason) if tells_why else None
        news.append(News(family, number, policy, state, ended, result, why, None if has_link else (row.id, id)))
    return news


class Notes:
    """Changes of families that were not written yet."""

    def __init__(self) -> None:
        self._families: dict[int, Family] = {}
        self._links: list[tuple[ChildState, JsonText | None, str | None, int, int]] = []
        self._new_links: list[tuple[int, int, int, str, Policy, ChildState, JsonText | None, str | None]] = []
        self._forgotten: list[tuple[int, int]] = []

    def take(self, family: Family, news: News) -> bool:
        """Records the end of a child; False if it is of no consequence."""
        if news.state == "completed":
            return False
        effect = EFFECTS[news.ended][news.policy]
        was_awaited = is_awaited(news.policy, news.state)
        if news.ended == "removed":
            if not was_awaited:
                return False
            self._forgotten.append((news.family, news.number))
        elif effect == "done" or news.state == "pending":
            if news.unlinked is None:
                self._links.append((news.ended, news.result, news.reason, news.family, news.number))
            else:
                named = news.family, news.number, *news.unlinked, news.policy
                self._new_links.append((*named, news.ended, news.result, news.reason))
            family.count(news.ended, 1)
        else:
            return False
        family.count(news.state, -1)
        if was_awaited and effect != "hold":
            family.awaited -= 1
        if effect in OWED and (family.owed is None or OWED.index(effect) > OWED.index(family.owed)):
            family.owed, family.owed_reason = effect, news.reason or ""
        self.change(family)
        return True

    def change(self, family: Family) -> None:
        self._families[family.id] = family

    def await_again(self, family: Family, number: int, state: ChildState) -> None:
        """The parent waits again for a child that failed."""
        self._links.append(("pending", None, None, family.id, number))
        family.count(state, -1)
        family.count("pending", 1)
        family.awaited += 1
        self.change(family)

    def write(self, tx: Transaction) -> None:
        if self._links:
            tx.run_many(_SQL["write_link"], self._links)
        if self._new_links:
            tx.run_many(_SQL["end_without_link"], self._new_links)
        if self._forgotten:
            tx.run_many(_SQL["forget_link"], self._forgotten)
        if self._families:
            tx.run(_SQL["write_families"], {"families": as_json(list(self._families.values()))})
        self._links, self._new_links, self._forgotten, self._families = [], [], [], {}
