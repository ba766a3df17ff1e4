"""Examining a store before it is opened: whether it exists, its schema version, and problems of its environment.

An optional feature, not a command: a store without any state to examine, such as the memory store, does not offer it.
"""

from __future__ import annotations

from typing import Literal, Protocol, TypeAlias

import msgspec

Level: TypeAlias = Literal["ok", "warning", "problem"]
"""A warning may be intended; a problem prevents jobs from being stored or run."""


class Finding(msgspec.Struct, frozen=True):
    check: str
    level: Level
    what: str
    remedy: str = ""
    """What to do about it; empty if the level is ok."""


class Inspection(msgspec.Struct, frozen=True):
    exists: bool
    newest: int
    """The schema version of this Ropeway release."""
    version: int | None = None
    """The store's schema version; None if it does not exist or cannot be read (`findings` says why)."""
    migrations: list[str] = []
    """The scripts that opening it will run, one per version."""
    findings: list[Finding] = []


class Inspectable(Protocol):
    def inspect(self) -> Inspection:
        """Examines the store without creating or migrating anything. Blocks, and never raises."""
        ...


class Migratable(Protocol):
    """A store that can be opened without migrating it, so that migrations are run separately."""

    async def migrate(self) -> None: ...
