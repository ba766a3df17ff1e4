"""Authorizes statements of callers inside Ropeway's transactions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Final

import apsw

from .statements import migrations

_LOOKING: Final = frozenset({apsw.SQLITE_READ, apsw.SQLITE_SELECT, apsw.SQLITE_FUNCTION, apsw.SQLITE_RECURSIVE})
_ENDING: Final = frozenset(
    {apsw.SQLITE_TRANSACTION, apsw.SQLITE_SAVEPOINT, apsw.SQLITE_ATTACH, apsw.SQLITE_DETACH, apsw.SQLITE_PRAGMA}
)
"""Actions that end or change the transaction. Savepoints, too: a rollback to one would undo jobs that were counted."""


@cache
def own_tables() -> frozenset[str]:
    connection = apsw.Connection(":memory:")
    for script in migrations():
        connection.execute(script)
    names = connection.execute("SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')")
    return frozenset(name for (name,) in names)


class Authorizer:
    def __init__(self, connection: apsw.Connection) -> None:
        self._ours = own_tables()
        self._is_guarded = False
        connection.authorizer = self._may

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Context in which statements of callers are checked."""
        self._is_guarded = True
        try:
            yield
        finally:
            self._is_guarded = False

    def _may(self, action: int, first: str | None, second: str | None, *_: str | None) -> int:
        if not self._is_guarded or action in _LOOKING:
            return apsw.SQLITE_OK
        # A temporary table of one of these names, however it is written, would stand before ours.
        names = {(first or "").lower(), (second or "").lower()}
        is_renaming = action == apsw.SQLITE_ALTER_TABLE and "temp" in names
        is_foreign = action in _ENDING or is_renaming or not names.isdisjoint(self._ours)
        return apsw.SQLITE_DENY if is_foreign else apsw.SQLITE_OK
