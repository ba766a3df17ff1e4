"""Who may do what: roles of tokens, the rights that they give, and the queues that they reach."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, Self, TypeAlias, get_args

import msgspec

from ..job.choices import one_of
from ..job.stages import STAGES, callback_queue

Right: TypeAlias = Literal["add", "work", "follow", "read", "operate", "administer"]
"""`follow` is looking at jobs whose id is known, at counts and events; `read` is also searching, logs and metrics."""
Role: TypeAlias = Literal["producer", "worker", "viewer", "operator", "admin"]

RIGHTS: Final[tuple[Right, ...]] = get_args(Right)
ROLES: Final[dict[Role, frozenset[Right]]] = {
    "producer": frozenset({"add", "follow"}),
    "worker": frozenset({"work", "follow"}),
    "viewer": frozenset({"read", "follow"}),
    "operator": frozenset({"add", "read", "follow", "operate"}),
    "admin": frozenset(RIGHTS),
}
RESERVED: Final = "ropeway."
"""Queues whose names begin so, such as that of the audit, are for `administer`, and for tokens that name them."""


class Principal(msgspec.Struct, frozen=True):
    """The caller of a request: who it is, and what it may do."""

    name: str
    """The key id of its token; `local` for a caller on this machine that needs none."""
    rights: frozenset[Right]
    queues: tuple[str, ...] | None = None
    """Names, or beginnings of names that end with `*`; None reaches every queue."""

    @classmethod
    def of(cls, name: str, *roles: Role, queues: Iterable[str] | None = None) -> Self:
        """One with the rights of these roles, for an application that knows its users itself."""
        known = [one_of(*ROLES)("roles", role) for role in roles]
        return cls(name, rights_of(known), None if queues is None else tuple(queues))

    def may(self, *any_of: Right) -> bool:
        return any(right in self.rights for right in any_of)

    def reaches(self, queue: str) -> bool:
        """Whoever reaches a queue reaches those in which callbacks of its retention run."""
        for stage in STAGES:
            queue = queue.removeprefix(callback_queue("", stage))
        if queue.startswith(RESERVED) and "administer" not in self.rights:
            return queue in (self.queues or ())
        return self.queues is None or any(_covers(pattern, queue) for pattern in self.queues)

    def beyond(self, queues: Iterable[str]) -> str | None:
        """The first of the queues that it does not reach."""
        return next((queue for queue in queues if not self.reaches(queue)), None)


def rights_of(roles: Iterable[Role]) -> frozenset[Right]:
    return frozenset().union(*(ROLES[role] for role in roles))


def _covers(pattern: str, queue: str) -> bool:
    return queue.startswith(pattern[:-1]) if pattern.endswith("*") else queue == pattern


LOCAL: Final = Principal("local", ROLES["admin"])
