"""Pools of connections for transactions of callers, which are reused: connecting takes longer than most of them."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager, suppress
from socket import SHUT_RDWR, socket
from typing import Any, Final, TypeAlias

from psycopg import AsyncConnection, AsyncCursor, Connection, Cursor, Error, IsolationLevel
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from ...store import forks
from .connection import conninfo_of, raise_if_unreachable
from .target import Target

MOST: Final = 10
_RESET: Final = (
    "CLOSE ALL; SET SESSION AUTHORIZATION DEFAULT; RESET ALL; UNLISTEN *; SELECT pg_advisory_unlock_all(); DISCARD TEMP"
)
"""Not DISCARD ALL: it would deallocate statements that psycopg believes to be prepared."""
_KIND: Final[dict[str, Any]] = {"autocommit": True, "prepare_threshold": None}
"""Nothing is prepared: behind a pooler another client of the session may have used the same names."""

Begun: TypeAlias = tuple[AsyncConnection, AbstractAsyncContextManager[Any]]
"""A connection and its transaction block, inside of which psycopg refuses `commit` and `rollback`."""


class Checkout:
    """A connection taken from a blocking pool. Made first, so that nothing leaks if a signal comes at any step."""

    def __init__(self) -> None:
        self.connection: Connection | None = None
        self.block: AbstractContextManager[Any] | None = None
        """None until BEGIN has succeeded."""

    def close(self) -> None:
        """Closes the connection, which rolls back what was not committed."""
        if self.connection is not None:
            self.connection.close()
            self.connection = None


class TransactionConnections:
    """The pool of one event loop."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._kept: deque[AsyncConnection] = deque()
        self._is_closed = False

    async def begin(self) -> Begun:
        while self._kept:
            # The newest first: the others may have been dropped by something on the way.
            try:
                return await self._begin(self._kept.pop())
            except Error:
                continue
        try:
            async with asyncio.timeout(self._target.timeout):
                connection = await AsyncConnection.connect(conninfo_of(self._target), **_KIND)
        except (TimeoutError, Error) as error:
            raise_if_unreachable(self._target, error)
            raise
        await connection.set_isolation_level(IsolationLevel.READ_COMMITTED)
        return await self._begin(connection)

    @contextmanager
    def limit(self, connection: AsyncConnection) -> Iterator[None]:
        """Shuts the socket down after the timeout. psycopg would wait on, even if the caller is cancelled."""
        timer = asyncio.get_running_loop().call_later(self._target.timeout, _shut_down, connection)
        try:
            yield
        finally:
            timer.cancel()

    async def _begin(self, connection: AsyncConnection) -> Begun:
        block = connection.transaction()
        try:
            await block.__aenter__()
        except BaseException:
            await connection.close()
            raise
        return connection, block

    async def release(self, connection: AsyncConnection) -> None:
        """Resets the connection and keeps it; closes it if it is not idle or the pool is full."""
        if self._is_closed or len(self._kept) >= MOST or not _is_idle(connection):
            await connection.close()
            return
        try:
            connection.row_factory, connection.cursor_factory = tuple_row, AsyncCursor
            await connection.execute(_RESET)
            self._kept.append(connection)
        except Error:
            await connection.close()

    async def close(self) -> None:
        self._is_closed = True
        while self._kept:
            await self._kept.pop().close()


class BlockingTransactionConnections:
    """The pool that all threads share."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._kept: deque[Connection] = deque()
        self._is_closed = False
        forks.follow(self)

    def reset_after_fork(self) -> object:
        inherited, self._kept = self._kept, deque()
        return inherited

    def begin(self, checkout: Checkout) -> Connection:
        """Begins a transaction. Release or close the checkout afterwards, also if this raised."""
        while True:
            try:
                checkout.connection = self._kept.pop()
                return self._begin(checkout, checkout.connection)
            except IndexError:
                break
            except Error:
                checkout.close()
        try:
            checkout.connection = Connection.connect(conninfo_of(self._target), **_KIND)
        except Error as error:
            raise_if_unreachable(self._target, error)
            raise
        checkout.connection.set_isolation_level(IsolationLevel.READ_COMMITTED)
        return self._begin(checkout, checkout.connection)

    def _begin(self, checkout: Checkout, connection: Connection) -> Connection:
        block = connection.transaction()
        block.__enter__()
        checkout.block = block
        return connection

    def release(self, checkout: Checkout, connection: Connection) -> None:
        if self._is_closed or len(self._kept) >= MOST or not _is_idle(connection):
            checkout.close()
            return
        try:
            connection.row_factory, connection.cursor_factory = tuple_row, Cursor
            connection.execute(_RESET)
        except Error:
            checkout.close()
            return
        # In this order: a signal in between must not leave it both checked out and in the pool.
        checkout.connection = None
        self._kept.append(connection)
        self._close_if_closed()

    def close(self) -> None:
        self._is_closed = True
        self._close_if_closed()

    def _close_if_closed(self) -> None:
        """Closes what is kept, if the pool was closed: also called after a release, which may race with `close`."""
        while self._is_closed and self._kept:
            self._kept.pop().close()


def _shut_down(connection: AsyncConnection) -> None:
    with suppress(Error, OSError), socket(fileno=os.dup(connection.fileno())) as copy:
        copy.shutdown(SHUT_RDWR)


def _is_idle(connection: AsyncConnection | Connection) -> bool:
    return not connection.closed and connection.info.transaction_status == TransactionStatus.IDLE
