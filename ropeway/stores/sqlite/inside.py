"""Transactions that callers share, as they are awaited and as they are waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from ...errors import InvalidOption
from ...job.outcomes import Outcome
from ...job.record import NewJob
from ...showing import shown
from ...store.values import Added, Answer
from .adding import add
from .own import Own, Parameters, Row
from .settling import settle
from .threads import in_a_thread

T = TypeVar("T")

TAKEN: Final = "on SQLite it is what `queue.transaction()` or `job.transaction()` gives"


class SQLiteTransaction:
    """What `async with queue.transaction() as tx` gives."""

    def __init__(self, own: Own) -> None:
        self.own = own

    async def execute(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        """The rows that it answers. Writes to tables of Ropeway's are refused, and so is a commit."""
        return await _apart(self.own, lambda: self.own.execute(sql, parameters))


class SyncSQLiteTransaction:
    """What `with queue.sync.transaction() as tx` gives."""

    def __init__(self, own: Own) -> None:
        self.own = own

    def execute(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        """The rows that it answers. Writes to tables of Ropeway's are refused, and so is a commit."""
        return self.own.execute(sql, parameters)


class InsideFile:
    def __init__(self, own: Own) -> None:
        self._own = own

    async def begin(self) -> Any:
        try:
            await _apart(self._own, self._own.begin)
        except asyncio.CancelledError:
            # It may still get its turn, and must not keep it.
            self._own.give_up()
            raise
        self._own.enter()
        return SQLiteTransaction(self._own)

    async def add(self, bundle: Sequence[NewJob]) -> list[Added]:
        return await _apart(self._own, lambda: self._own.do(add, [bundle])[0])

    async def settle(self, queue: str, outcome: Outcome) -> Answer:
        return await _apart(self._own, lambda: self._own.do(settle, queue, [outcome], None).answers[0])

    async def commit(self) -> None:
        await _apart(self._own, self._own.commit)

    async def roll_back(self) -> None:
        await _apart(self._own, self._own.roll_back)


class InsideFileHere:
    def __init__(self, own: Own) -> None:
        self._own = own

    def begin(self) -> Any:
        self._own.begin()
        self._own.enter()
        return SyncSQLiteTransaction(self._own)

    def add(self, bundle: Sequence[NewJob]) -> list[Added]:
        return self._own.do(add, [bundle])[0]

    def settle(self, queue: str, outcome: Outcome) -> Answer:
        return self._own.do(settle, queue, [outcome], None).answers[0]

    def commit(self) -> None:
        self._own.commit()

    def roll_back(self) -> None:
        self._own.roll_back()


def own_of(tx: object, kind: type[SQLiteTransaction | SyncSQLiteTransaction], path: str) -> Own:
    """The transaction that a caller was given, if it is one of this file."""
    if isinstance(tx, SQLiteTransaction | SyncSQLiteTransaction):
        if not isinstance(tx, kind):
            other = "queue.sync.add" if kind is SQLiteTransaction else "await queue.add"
            raise InvalidOption("tx", f"is {shown(tx)}, which does not fit this call: use `{other}`")
        if tx.own.path != path:
            raise InvalidOption("tx", f"is a transaction on {tx.own.path}, and this queue is on {path}")
        return tx.own
    raise InvalidOption("tx", f"cannot be {shown(tx)}: {TAKEN}")


async def _apart(own: Own, function: Callable[[], T]) -> T:
    return await in_a_thread(own.path, function)
