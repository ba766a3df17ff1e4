"""Adapters for connections and sessions of other libraries: psycopg, asyncpg, SQLAlchemy, Django.

They are recognised by the names of their classes, so that no library is imported that is not used.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final, Protocol

from psycopg import AsyncCursor, Cursor, pq
from psycopg.rows import tuple_row

from ...errors import InvalidOption
from ...showing import shown, with_article
from .json_calls import Call

ACCEPTED: Final = (
    "give an open connection of psycopg, asyncpg or Django (django.db.connection), or a Session, Connection, "
    "AsyncSession or AsyncConnection of SQLAlchemy"
)


class Driver(Protocol):
    """Operations on a caller's transaction."""

    async def ask(self, call: Call) -> str: ...

    async def begin(self) -> None:
        """Does nothing where a connection begins by itself with its first statement."""
        ...

    async def commit(self) -> None: ...

    async def roll_back(self) -> None: ...


class BlockingDriver(Protocol):
    """The same without an event loop."""

    def ask(self, call: Call) -> str: ...

    def begin(self) -> None: ...

    def commit(self) -> None: ...

    def roll_back(self) -> None: ...


class Psycopg:
    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def ask(self, call: Call) -> str:
        # Not by the connection itself, which may make cursors of other kinds.
        async with AsyncCursor(self._connection, row_factory=tuple_row) as cursor:
            await cursor.execute(f"SELECT {call.function}(%s)".encode(), (call.text,))
            return _only(await cursor.fetchone())

    async def begin(self) -> None:
        if self._connection.autocommit:
            _refuse_begun(self._connection.info.transaction_status != pq.TransactionStatus.IDLE)
            async with AsyncCursor(self._connection) as cursor:
                await cursor.execute("BEGIN")

    async def commit(self) -> None:
        await self._connection.commit()

    async def roll_back(self) -> None:
        await self._connection.rollback()


class BlockingPsycopg:
    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def ask(self, call: Call) -> str:
        with Cursor(self._connection, row_factory=tuple_row) as cursor:
            cursor.execute(f"SELECT {call.function}(%s)".encode(), (call.text,))
            return _only(cursor.fetchone())

    def begin(self) -> None:
        if self._connection.autocommit:
            _refuse_begun(self._connection.info.transaction_status != pq.TransactionStatus.IDLE)
            with Cursor(self._connection) as cursor:
                cursor.execute("BEGIN")

    def commit(self) -> None:
        self._connection.commit()

    def roll_back(self) -> None:
        self._connection.rollback()


class Asyncpg:
    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._transaction: Any = None

    async def ask(self, call: Call) -> str:
        return str(await self._connection.fetchval(f"SELECT {call.function}($1)", call.text))

    async def begin(self) -> None:
        _refuse_begun(self._connection.is_in_transaction())
        self._transaction = self._connection.transaction()
        await self._transaction.start()

    async def commit(self) -> None:
        await self._transaction.commit()

    async def roll_back(self) -> None:
        await self._transaction.rollback()


class SQLAlchemy:
    """An AsyncSession or an AsyncConnection."""

    def __init__(self, given: Any) -> None:
        self._given = given

    async def ask(self, call: Call) -> str:
        # The session's own `execute` may be another one: some libraries wrap it.
        connection = await self._connection()
        _refuse_other_dialects(connection)
        return str((await connection.execute(*_statement(call))).scalar_one())

    async def begin(self) -> None:
        _refuse_autocommit((await self._connection()).sync_connection)

    async def commit(self) -> None:
        await self._given.commit()

    async def roll_back(self) -> None:
        await self._given.rollback()

    async def _connection(self) -> Any:
        return await self._given.connection() if _is_session(self._given) else self._given


class BlockingSQLAlchemy:
    """A Session or a Connection."""

    def __init__(self, given: Any) -> None:
        self._given = given

    def ask(self, call: Call) -> str:
        connection = self._connection()
        _refuse_other_dialects(connection)
        return str(connection.execute(*_statement(call)).scalar_one())

    def begin(self) -> None:
        _refuse_autocommit(self._connection())

    def commit(self) -> None:
        self._given.commit()

    def roll_back(self) -> None:
        self._given.rollback()

    def _connection(self) -> Any:
        return self._given.connection() if _is_session(self._given) else self._given


class Django:
    def __init__(self, connection: Any) -> None:
        if connection.vendor != "postgresql":
            raise InvalidOption("tx", f"is Django's connection to {connection.vendor}, and this queue is on PostgreSQL")
        self._connection = connection
        self._atomic: Any = None

    def ask(self, call: Call) -> str:
        with self._connection.cursor() as cursor:
            cursor.execute(f"SELECT {call.function}(%s)", [call.text])
            return _only(cursor.fetchone())

    def begin(self) -> None:
        # Without autocommit Django begins by itself, and its blocks do not commit.
        _refuse_begun(self._connection.in_atomic_block or not self._connection.get_autocommit())
        self._atomic = import_module("django.db.transaction").atomic(using=self._connection.alias)
        self._atomic.__enter__()

    def commit(self) -> None:
        self._atomic.__exit__(None, None, None)

    def roll_back(self) -> None:
        if self._connection.in_atomic_block:
            self._connection.set_rollback(True)
            self._atomic.__exit__(None, None, None)


_ASYNC: Final[Mapping[str, type[Driver]]] = {
    "psycopg.AsyncConnection": Psycopg,
    "asyncpg.Connection": Asyncpg,
    "asyncpg.PoolConnectionProxy": Asyncpg,
    "sqlalchemy.AsyncSession": SQLAlchemy,
    "sqlalchemy.async_scoped_session": SQLAlchemy,
    "sqlalchemy.AsyncConnection": SQLAlchemy,
}
_BLOCKING: Final[Mapping[str, type[BlockingDriver]]] = {
    "psycopg.Connection": BlockingPsycopg,
    "sqlalchemy.Session": BlockingSQLAlchemy,
    "sqlalchemy.scoped_session": BlockingSQLAlchemy,
    "sqlalchemy.Connection": BlockingSQLAlchemy,
    "django.ConnectionProxy": Django,
    "django.BaseDatabaseWrapper": Django,
}


def driver_of(given: object) -> Driver:
    kinds = _kinds(given)
    for kind in kinds:
        if kind in _ASYNC:
            return _ASYNC[kind](given)  # type: ignore[call-arg]  # each takes what it is named for
    if not kinds.isdisjoint(_BLOCKING):
        raise InvalidOption(
            "tx",
            f"is {_named(given)}, which would block the event loop: use an async connection or session, or call "
            "`queue.sync.add(...)` in the thread that the transaction runs in (asyncio.to_thread, sync_to_async)",
        )
    raise InvalidOption("tx", f"cannot be {shown(given)}: {ACCEPTED}")


def blocking_driver_of(given: object) -> BlockingDriver:
    kinds = _kinds(given)
    for kind in kinds:
        if kind in _BLOCKING:
            return _BLOCKING[kind](given)  # type: ignore[call-arg]  # each takes what it is named for
    if not kinds.isdisjoint(_ASYNC):
        raise InvalidOption("tx", f"is {_named(given)}, which has to be awaited: use `await queue.add(...)`")
    raise InvalidOption("tx", f"cannot be {shown(given)}: {ACCEPTED}")


def _kinds(given: object) -> set[str]:
    return {f"{kind.__module__.partition('.')[0]}.{kind.__name__}" for kind in type(given).__mro__}


def _named(given: object) -> str:
    return with_article(f"{type(given).__module__.partition('.')[0]}.{type(given).__name__}")


def _only(row: Any) -> str:
    [answer] = row
    return str(answer)


def _refuse_begun(is_begun: bool) -> None:
    if is_begun:
        raise InvalidOption(
            "using", "is in a transaction already, which this block could not commit: begin none, the block does"
        )


def _refuse_autocommit(connection: Any) -> None:
    """SQLAlchemy begins by itself, except in AUTOCOMMIT, where its driver commits each statement."""
    if getattr(connection.connection.dbapi_connection, "autocommit", False):
        raise InvalidOption(
            "using", "is in the isolation level AUTOCOMMIT, which has no transactions: use an engine without it"
        )


def _is_session(given: object) -> bool:
    return not hasattr(given, "exec_driver_sql")


def _refuse_other_dialects(connection: Any) -> None:
    if connection.dialect.name != "postgresql":
        raise InvalidOption(
            "tx", f"is SQLAlchemy's connection to {connection.dialect.name}, and this queue is on PostgreSQL"
        )


def _statement(call: Call) -> tuple[Any, dict[str, str]]:
    return import_module("sqlalchemy").text(f"SELECT {call.function}(:given)"), {"given": call.text}
