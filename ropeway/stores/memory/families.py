"""Parents and what they know of their children."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import TypeAlias

from msgspec import Struct

from ...job.codec import JsonText
from ...job.flows import CHILD_STATES, Child, ChildState, Effect, Policy, is_awaited
from ...job.instants import Instant, Milliseconds
from ...store.values import Children, ChildStatus

Key: TypeAlias = tuple[str, str]
"""Queue and id of a child."""


class Link(Struct):
    """A child, as its parent knows it."""

    policy: Policy
    state: ChildState = "pending"
    result: JsonText | None = None
    reason: str | None = None

    @property
    def is_awaited(self) -> bool:
        return is_awaited(self.policy, self.state)


class Family(Struct):
    """The children of one job."""

    links: dict[Key, Link]
    left: int = 0
    """How many children are still waited for."""
    delay: Milliseconds = 0
    due_at: Instant | None = None
    """The delay of the parent, until its first release."""
    is_released: bool = False
    """True if the parent need not wait again for children that are still left."""
    owed: Effect | None = None
    """The strongest effect of a child that failed while the parent did not wait, until it waits."""
    owed_reason: str = ""

    def add(self, children: Sequence[Child]) -> None:
        for child in children:
            if (child.queue, child.id) not in self.links:
                self.links[child.queue, child.id] = Link(child.policy)
                self.left += 1

    @property
    def is_awaited(self) -> bool:
        return self.left > 0 or self.owed is not None

    def page(self, states: Collection[ChildState], after: str | None, limit: int) -> Children:
        counts: Counter[ChildState] = Counter(link.state for link in self.links.values())
        start = int(after) if after and after.isdecimal() else 0
        found: list[ChildStatus] = []
        for number, ((queue, id), link) in enumerate(self.links.items()):
            if number < start or link.state not in states:
                continue
            if len(found) == limit:
                return Children(found, _all(counts), str(number), self.is_awaited)
            found.append(ChildStatus(queue, id, link.policy, link.state, link.result, link.reason))
        return Children(found, _all(counts), None, self.is_awaited)


def _all(counts: Counter[ChildState]) -> dict[ChildState, int]:
    return {state: counts[state] for state in CHILD_STATES}
