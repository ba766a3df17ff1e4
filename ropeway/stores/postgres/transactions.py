"""Transactions shared with callers: on their own connections, or on one that the store lends them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psycopg import Error, Rollback
from psycopg.pq import TransactionStatus

from ...job.outcomes import Outcome
from ...job.record import NewJob
from ...store.values import Added, Answer
from .drivers import BlockingDriver, BlockingPsycopg, Driver, Psycopg
from .failures import raise_typed, typed_error
from .json_calls import Call, JsonCalls
from .transaction_connections import Begun, BlockingTransactionConnections, Checkout, TransactionConnections


class JoinedTransaction:
    """A transaction on the caller's connection or session. Errors of its driver are raised as they are."""

    def __init__(self, calls: JsonCalls, given: object, driver: Driver) -> None:
        self._calls, self._given, self._driver = calls, given, driver

    async def begin(self) -> Any:
        await self._driver.begin()
        return self._given

    async def add(self, bundle: Sequence[NewJob]) -> list[Added]:
        return self._calls.added(bundle, await self._ask(self._calls.add(bundle)))

    async def settle(self, queue: str, outcome: Outcome) -> Answer:
        return self._calls.completed(await self._ask(self._calls.complete(queue, outcome)))

    async def commit(self) -> None:
        await self._driver.commit()

    async def roll_back(self) -> None:
        await self._driver.roll_back()

    async def _ask(self, call: Call) -> str:
        try:
            return await self._driver.ask(call)
        except Exception as error:
            known = self._calls.known(error)
            if known is None:
                raise
            raise known from error


class BlockingJoinedTransaction:
    """The same without an event loop."""

    def __init__(self, calls: JsonCalls, given: object, driver: BlockingDriver) -> None:
        self._calls, self._given, self._driver = calls, given, driver
        self._has_begun = False

    def begin(self) -> Any:
        self._driver.begin()
        self._has_begun = True
        return self._given

    def add(self, bundle: Sequence[NewJob]) -> list[Added]:
        return self._calls.added(bundle, self._ask(self._calls.add(bundle)))

    def settle(self, queue: str, outcome: Outcome) -> Answer:
        return self._calls.completed(self._ask(self._calls.complete(queue, outcome)))

    def commit(self) -> None:
        self._driver.commit()

    def roll_back(self) -> None:
        # A transaction that was refused is its caller's.
        if self._has_begun:
            self._driver.roll_back()

    def _ask(self, call: Call) -> str:
        try:
            return self._driver.ask(call)
        except Exception as error:
            known = self._calls.known(error)
            if known is None:
                raise
            raise known from error


class OwnTransaction(JoinedTransaction):
    """A transaction on a connection of the store, which the caller uses too."""

    def __init__(self, calls: JsonCalls, transaction_connections: TransactionConnections, url: str) -> None:
        self._calls, self._connections, self._url = calls, transaction_connections, url
        self._begun: Begun | None = None

    async def begin(self) -> Any:
        try:
            self._begun = await self._connections.begin()
        except (Error, OSError) as error:
            raise_typed(self._url, error)
            raise
        connection, _ = self._begun
        self._driver = Psycopg(connection)
        return connection

    async def commit(self) -> None:
        await self._end(None)

    async def roll_back(self) -> None:
        await self._end(Rollback())

    async def _end(self, how: Rollback | None) -> None:
        if self._begun is None:
            return
        (connection, block), self._begun = self._begun, None
        with self._connections.limit(connection):
            try:
                await block.__aexit__(None if how is None else Rollback, how, None)
            except Error as error:
                raise typed_error(self._url, error) from error
            finally:
                await self._connections.release(connection)

    async def _ask(self, call: Call) -> str:
        assert self._begun is not None
        with self._connections.limit(self._begun[0]):
            try:
                return await self._driver.ask(call)
            except Error as error:
                raise typed_error(self._url, error) from error


class BlockingOwnTransaction(BlockingJoinedTransaction):
    """The same without an event loop. A signal handler may raise at any step."""

    def __init__(self, calls: JsonCalls, transaction_connections: BlockingTransactionConnections, url: str) -> None:
        self._calls, self._connections, self._url = calls, transaction_connections, url
        self._checkout = Checkout()

    def begin(self) -> Any:
        try:
            connection = self._connections.begin(self._checkout)
        except (Error, OSError) as error:
            raise_typed(self._url, error)
            raise
        self._driver = BlockingPsycopg(connection)
        return connection

    def commit(self) -> None:
        self._end(None)

    def roll_back(self) -> None:
        self._end(Rollback())

    def _end(self, how: Rollback | None) -> None:
        connection, block = self._checkout.connection, self._checkout.block
        if connection is None:
            return
        if block is None or (how is not None and connection.info.transaction_status == TransactionStatus.ACTIVE):
            # A signal interrupted BEGIN, or a statement that the next one would have to wait for.
            self._checkout.close()
            return
        try:
            block.__exit__(None if how is None else Rollback, how, None)
            self._connections.release(self._checkout, connection)
        except BaseException as error:
            # Its state is unknown: this may have been a signal, too.
            self._checkout.close()
            raise_typed(self._url, error)
            raise

    def _ask(self, call: Call) -> str:
        try:
            return self._driver.ask(call)
        except Error as error:
            raise typed_error(self._url, error) from error
