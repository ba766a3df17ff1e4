"""The async and the blocking face of a caller's transaction."""

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
from .caller_transaction import CallerTransaction, Parameters, Row
from .settling import settle
from .threads import in_a_thread

T = TypeVar("T")

TAKEN: Final = "on SQLite it is what `queue.transaction()` or `job.transaction()` gives"


class SQLiteTransaction:
    """The `tx` of `async with queue.transaction() as tx`."""

    def __init__(self, transaction: CallerTransaction) -> None:
        self.transaction = transaction

    async def execute(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        """Executes a statement and returns its rows. Writes to Ropeway's tables are refused, and so is a commit."""
        return await _in_a_thread(self.transaction, lambda: self.transaction.execute(sql, parameters))


class SyncSQLiteTransaction:
    """The `tx` of `with queue.sync.transaction() as tx`."""

    def __init__(self, transaction: CallerTransaction) -> None:
        self.transaction = transaction

    def execute(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        """The rows that it answers. Writes to tables of Ropeway's are refused, and so is a commit."""
        return self.transaction.execute(sql, parameters)


class AsyncInside:
    def __init__(self, transaction: CallerTransaction) -> None:
        self._transaction = transaction

    async def begin(self) -> Any:
        try:
            await _in_a_thread(self._transaction, self._transaction.begin)
        except asyncio.CancelledError:
            # It may still get its turn, and must not keep it.
            self._transaction.give_up()
            raise
        self._transaction.enter()
        return SQLiteTransaction(self._transaction)

    async def add(self, bundle: Sequence[NewJob]) -> list[Added]:
        return await _in_a_thread(self._transaction, lambda: self._transaction.do(add, [bundle])[0])

    async def settle(self, queue: str, outcome: Outcome) -> Answer:
        return await _in_a_thread(
            self._transaction, lambda: self._transaction.do(settle, queue, [outcome], None).answers[0]
        )

    async def commit(self) -> None:
        await _in_a_thread(self._transaction, self._transaction.commit)

    async def roll_back(self) -> None:
        await _in_a_thread(self._transaction, self._transaction.roll_back)


class SyncInside:
    def __init__(self, transaction: CallerTransaction) -> None:
        self._transaction = transaction

    def begin(self) -> Any:
        self._transaction.begin()
        self._transaction.enter()
        return SyncSQLiteTransaction(self._transaction)

    def add(self, bundle: Sequence[NewJob]) -> list[Added]:
        return self._transaction.do(add, [bundle])[0]

    def settle(self, queue: str, outcome: Outcome) -> Answer:
        return self._transaction.do(settle, queue, [outcome], None).answers[0]

    def commit(self) -> None:
        self._transaction.commit()

    def roll_back(self) -> None:
        self._transaction.roll_back()


def transaction_of(tx: object, kind: type[SQLiteTransaction | SyncSQLiteTransaction], path: str) -> CallerTransaction:
    """Returns the transaction behind a caller's `tx`; raises `InvalidOption` if it is not one on this file."""
    if isinstance(tx, SQLiteTransaction | SyncSQLiteTransaction):
        if not isinstance(tx, kind):
            other = "queue.sync.add" if kind is SQLiteTransaction else "await queue.add"
            raise InvalidOption("tx", f"is {shown(tx)}, which does not fit this call: use `{other}`")
        if tx.transaction.path != path:
            raise InvalidOption("tx", f"is a transaction on {tx.transaction.path}, and this queue is on {path}")
        return tx.transaction
    raise InvalidOption("tx", f"cannot be {shown(tx)}: {TAKEN}")


async def _in_a_thread(transaction: CallerTransaction, function: Callable[[], T]) -> T:
    return await in_a_thread(transaction.path, function)
