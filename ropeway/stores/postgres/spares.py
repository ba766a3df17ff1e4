"""Connections for transactions of the store's own, kept from one to the next: making one takes longer than its use."""

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
from .connection import conninfo_of, tell_unreachable
from .target import Target

MOST: Final = 10
_RESET: Final = (
    "CLOSE ALL; SET SESSION AUTHORIZATION DEFAULT; RESET ALL; UNLISTEN *; SELECT pg_advisory_unlock_all(); DISCARD TEMP"
)
"""Not DISCARD ALL, which would also forget what psycopg believes to be prepared."""
_KIND: Final[dict[str, Any]] = {"autocommit": True, "prepare_threshold": None}
"""Behind a pooler the next transaction may meet a session in which others have prepared theirs under the same names."""

Begun: TypeAlias = tuple[AsyncConnection, AbstractAsyncContextManager[Any]]
"""A connection and its transaction, within which psycopg lets nobody else commit or roll back."""


class Loan:
    """The same where a signal may come at any step: known before it has begun, and until it has ended."""

    def __init__(self) -> None:
        self.connection: Connection | None = None
        self.block: AbstractContextManager[Any] | None = None
        """None until it has begun as it should."""

    def close(self) -> None:
        """What was not committed is rolled back with the connection."""
        if self.connection is not None:
            self.connection.close()
            self.connection = None


class Spares:
    """Those of one event loop."""

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
            tell_unreachable(self._target, error)
            raise
        await connection.set_isolation_level(IsolationLevel.READ_COMMITTED)
        return await self._begin(connection)

    @contextmanager
    def limit(self, connection: AsyncConnection) -> Iterator[None]:
        """Hangs up on a server that takes too long. psycopg would wait for it, even when the caller is cancelled."""
        timer = asyncio.get_running_loop().call_later(self._target.timeout, _hang_up, connection)
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

    async def give_back(self, connection: AsyncConnection) -> None:
        """As it was made; one that is not fit for that is closed."""
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


class SparesHere:
    """Those of all threads."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._kept: deque[Connection] = deque()
        self._is_closed = False
        forks.follow(self)

    def reset_after_fork(self) -> object:
        inherited, self._kept = self._kept, deque()
        return inherited

    def begin(self, loan: Loan) -> Connection:
        """Give it back, or close it; close it also if this was broken off."""
        while True:
            try:
                loan.connection = self._kept.pop()
                return self._begin(loan, loan.connection)
            except IndexError:
                break
            except Error:
                loan.close()
        try:
            loan.connection = Connection.connect(conninfo_of(self._target), **_KIND)
        except Error as error:
            tell_unreachable(self._target, error)
            raise
        loan.connection.set_isolation_level(IsolationLevel.READ_COMMITTED)
        return self._begin(loan, loan.connection)

    def _begin(self, loan: Loan, connection: Connection) -> Connection:
        block = connection.transaction()
        block.__enter__()
        loan.block = block
        return connection

    def give_back(self, loan: Loan, connection: Connection) -> None:
        if self._is_closed or len(self._kept) >= MOST or not _is_idle(connection):
            loan.close()
            return
        try:
            connection.row_factory, connection.cursor_factory = tuple_row, Cursor
            connection.execute(_RESET)
        except Error:
            loan.close()
            return
        # In this order: a signal in between must not leave it in two hands.
        loan.connection = None
        self._kept.append(connection)
        self._close_if_closed()

    def close(self) -> None:
        self._is_closed = True
        self._close_if_closed()

    def _close_if_closed(self) -> None:
        """Again after each that was given back: another thread may have closed the store meanwhile."""
        while self._is_closed and self._kept:
            self._kept.pop().close()


def _hang_up(connection: AsyncConnection) -> None:
    with suppress(Error, OSError), socket(fileno=os.dup(connection.fileno())) as copy:
        copy.shutdown(SHUT_RDWR)


def _is_idle(connection: AsyncConnection | Connection) -> bool:
    return not connection.closed and connection.info.transaction_status == TransactionStatus.IDLE
