"""A store seen from outside, before it is opened: whether it is there, its version, and what is wrong with its place.

An extra and no verb. A store that has nothing to say before it is opened, such as one in memory, leaves it out.
"""

from __future__ import annotations

from typing import Literal, Protocol, TypeAlias

import msgspec

Level: TypeAlias = Literal["ok", "warning", "problem"]
"""A warning may be meant; a problem keeps jobs from being stored or run."""


class Finding(msgspec.Struct, frozen=True):
    check: str
    level: Level
    what: str
    remedy: str = ""
    """What to do about it; empty for what is well."""


class Inspection(msgspec.Struct, frozen=True):
    exists: bool
    newest: int
    """The version that this Ropeway makes of it."""
    version: int | None = None
    """None if it does not exist, or cannot be read: `findings` then says why."""
    migrations: list[str] = []
    """The statements that opening it will run, a script for each version."""
    findings: list[Finding] = []


class Inspectable(Protocol):
    def inspect(self) -> Inspection:
        """Looks, and neither makes nor migrates anything. Blocks, and raises nothing."""
        ...


class Migratable(Protocol):
    """A store whose opening may be told to leave migrations to somebody else."""

    async def migrate(self) -> None: ...
