"""Transactions that callers share: those of their own connections, and those that the store makes for them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any

from psycopg import AsyncConnection, Connection, Error, Rollback

from ...job.outcomes import Outcome
from ...job.record import NewJob
from ...store.values import Added, Answer
from .calls import Call, Calls
from .connection import conninfo_of
from .drivers import Driver, DriverHere, Psycopg, PsycopgHere
from .failures import typed
from .target import Target


class Joined:
    """A connection or session of the caller's. What its driver raises is raised as it is."""

    def __init__(self, calls: Calls, given: object, driver: Driver) -> None:
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


class JoinedHere:
    def __init__(self, calls: Calls, given: object, driver: DriverHere) -> None:
        self._calls, self._given, self._driver = calls, given, driver

    def begin(self) -> Any:
        self._driver.begin()
        return self._given

    def add(self, bundle: Sequence[NewJob]) -> list[Added]:
        return self._calls.added(bundle, self._ask(self._calls.add(bundle)))

    def settle(self, queue: str, outcome: Outcome) -> Answer:
        return self._calls.completed(self._ask(self._calls.complete(queue, outcome)))

    def commit(self) -> None:
        self._driver.commit()

    def roll_back(self) -> None:
        self._driver.roll_back()

    def _ask(self, call: Call) -> str:
        try:
            return self._driver.ask(call)
        except Exception as error:
            known = self._calls.known(error)
            if known is None:
                raise
            raise known from error


class Own(Joined):
    """A connection for one transaction. Inside of it psycopg lets nobody else commit or roll back."""

    def __init__(self, calls: Calls, target: Target) -> None:
        self._calls, self._target = calls, target
        self._connection: AsyncConnection | None = None
        self._block: AbstractAsyncContextManager[Any] | None = None

    async def begin(self) -> Any:
        try:
            async with asyncio.timeout(self._target.timeout):
                self._connection = await AsyncConnection.connect(conninfo_of(self._target), autocommit=True)
            self._block = self._connection.transaction()
            await self._block.__aenter__()
        except BaseException as error:
            await self._close()
            raise typed(self._target.url, error) from error
        self._driver = Psycopg(self._connection)
        return self._connection

    async def commit(self) -> None:
        await self._end(None)

    async def roll_back(self) -> None:
        await self._end(Rollback())

    async def _end(self, how: Rollback | None) -> None:
        block, self._block = self._block, None
        try:
            if block is not None:
                await block.__aexit__(None if how is None else Rollback, how, None)
        except Error as error:
            raise typed(self._target.url, error) from error
        finally:
            await self._close()

    async def _ask(self, call: Call) -> str:
        try:
            return await self._driver.ask(call)
        except Error as error:
            raise typed(self._target.url, error) from error

    async def _close(self) -> None:
        if self._connection is not None:
            await self._connection.close()


class OwnHere(JoinedHere):
    def __init__(self, calls: Calls, target: Target) -> None:
        self._calls, self._target = calls, target
        self._connection: Connection | None = None
        self._block: AbstractContextManager[Any] | None = None

    def begin(self) -> Any:
        try:
            self._connection = Connection.connect(conninfo_of(self._target), autocommit=True)
            self._block = self._connection.transaction()
            self._block.__enter__()
        except BaseException as error:
            self._close()
            raise typed(self._target.url, error) from error
        self._driver = PsycopgHere(self._connection)
        return self._connection

    def commit(self) -> None:
        self._end(None)

    def roll_back(self) -> None:
        self._end(Rollback())

    def _end(self, how: Rollback | None) -> None:
        block, self._block = self._block, None
        try:
            if block is not None:
                block.__exit__(None if how is None else Rollback, how, None)
        except Error as error:
            raise typed(self._target.url, error) from error
        finally:
            self._close()

    def _ask(self, call: Call) -> str:
        try:
            return self._driver.ask(call)
        except Error as error:
            raise typed(self._target.url, error) from error

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
