"""Transactions that a `FakeStore` opens itself: the callers' statements go to an in-memory SQLite database."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from threading import Lock
from typing import Any, Final, TypeAlias

import apsw

from ...errors import InvalidInput, InvalidOption
from ...showing import shown
from .pending_adds import PendingAdd

Parameters: TypeAlias = Sequence[Any] | Mapping[str, Any]
Row: TypeAlias = tuple[Any, ...]

_here: Final[ContextVar[tuple[OwnTransaction, ...]]] = ContextVar("ropeway_test_transactions", default=())
"""Transactions begun by this task or thread."""


class Database:
    """The database of one store and its siblings, created on first use. One transaction at a time."""

    def __init__(self) -> None:
        self.turn = Lock()
        self._connection: apsw.Connection | None = None

    def execute(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        if self._connection is None:
            self._connection = apsw.Connection(":memory:")
        return list(self._connection.execute(sql, parameters))


class OwnTransaction:
    def __init__(self, database: Database) -> None:
        self.database = database
        self.is_open = False
        self._landings: list[PendingAdd] = []

    def pending(self) -> list[PendingAdd]:
        return self._landings

    def on_commit(self, pending_add: PendingAdd) -> None:
        self._landings.append(pending_add)

    def execute(self, sql: str, parameters: Parameters) -> list[Row]:
        if not self.is_open:
            raise InvalidInput("this transaction has ended: it ends with its block")
        return self.database.execute(sql, parameters)

    def begin(self) -> Any:
        self._refuse_to_wait_for_itself()
        self.database.turn.acquire()
        self._enter()
        return SyncFakeTransaction(self)

    def commit(self) -> None:
        self.database.execute("COMMIT")
        landings = self._landings
        self._leave()
        for pending_add in landings:
            pending_add()

    def roll_back(self) -> None:
        if self.is_open:
            self.database.execute("ROLLBACK")
            self._leave()

    def _refuse_to_wait_for_itself(self) -> None:
        if any(other.is_open and other.database is self.database for other in _here.get()):
            raise InvalidInput("this task or thread has a transaction of this store open, and would wait for itself")

    def _enter(self) -> None:
        self.database.execute("BEGIN")
        self.is_open = True
        _here.set((*(other for other in _here.get() if other.is_open), self))

    def _leave(self) -> None:
        self.is_open = False
        self._landings = []
        self.database.turn.release()


class AwaitedOwnTransaction(OwnTransaction):
    async def begin(self) -> FakeTransaction:
        self._refuse_to_wait_for_itself()
        while not self.database.turn.acquire(blocking=False):  # noqa: ASYNC110 - threads take turns at it too
            await asyncio.sleep(0)
        self._enter()
        return FakeTransaction(self)


class FakeTransaction:
    """The `tx` of `async with queue.transaction() as tx` on a `FakeStore`."""

    def __init__(self, own: OwnTransaction) -> None:
        self.own = own

    async def execute(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        """The rows that it answers. It is SQLite's SQL, on tables that this store's transactions made."""
        return self.own.execute(sql, parameters)


class SyncFakeTransaction:
    """The `tx` of `with queue.sync.transaction() as tx` on a `FakeStore`."""

    def __init__(self, own: OwnTransaction) -> None:
        self.own = own

    def execute(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        """The rows that it answers. It is SQLite's SQL, on tables that this store's transactions made."""
        return self.own.execute(sql, parameters)


def own_of(tx: object, kind: type[FakeTransaction | SyncFakeTransaction], database: Database) -> OwnTransaction | None:
    """The store's own transaction behind the `tx` of a caller; None if it comes from another library."""
    if not isinstance(tx, FakeTransaction | SyncFakeTransaction):
        return None
    if not isinstance(tx, kind):
        other = "queue.sync.add" if kind is FakeTransaction else "await queue.add"
        raise InvalidOption("tx", f"is {shown(tx)}, which does not fit this call: use `{other}`")
    if tx.own.database is not database:
        raise InvalidOption("tx", "is a transaction of another test's store")
    return tx.own
