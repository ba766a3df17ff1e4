"""Transactions that callers share: those of their own connections, and those that the store makes for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psycopg import Error, Rollback
from psycopg.pq import TransactionStatus

from ...job.outcomes import Outcome
from ...job.record import NewJob
from ...store.values import Added, Answer
from .calls import Call, Calls
from .drivers import Driver, DriverHere, Psycopg, PsycopgHere
from .failures import tell, typed
from .spares import Begun, Loan, Spares, SparesHere


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


class Own(Joined):
    """A connection of the store's, for the caller's statements too."""

    def __init__(self, calls: Calls, spares: Spares, url: str) -> None:
        self._calls, self._spares, self._url = calls, spares, url
        self._begun: Begun | None = None

    async def begin(self) -> Any:
        try:
            self._begun = await self._spares.begin()
        except (Error, OSError) as error:
            tell(self._url, error)
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
        with self._spares.limit(connection):
            try:
                await block.__aexit__(None if how is None else Rollback, how, None)
            except Error as error:
                raise typed(self._url, error) from error
            finally:
                await self._spares.give_back(connection)

    async def _ask(self, call: Call) -> str:
        assert self._begun is not None
        with self._spares.limit(self._begun[0]):
            try:
                return await self._driver.ask(call)
            except Error as error:
                raise typed(self._url, error) from error


class OwnHere(JoinedHere):
    def __init__(self, calls: Calls, spares: SparesHere, url: str) -> None:
        self._calls, self._spares, self._url = calls, spares, url
        self._loan = Loan()

    def begin(self) -> Any:
        try:
            connection = self._spares.begin(self._loan)
        except (Error, OSError) as error:
            tell(self._url, error)
            raise
        self._driver = PsycopgHere(connection)
        return connection

    def commit(self) -> None:
        self._end(None)

    def roll_back(self) -> None:
        self._end(Rollback())

    def _end(self, how: Rollback | None) -> None:
        connection, block = self._loan.connection, self._loan.block
        if connection is None:
            return
        if block is None or (how is not None and connection.info.transaction_status == TransactionStatus.ACTIVE):
            # A signal broke off its begin, or a statement, for which whatever comes next would have to wait.
            self._loan.close()
            return
        try:
            block.__exit__(None if how is None else Rollback, how, None)
            self._spares.give_back(self._loan, connection)
        except BaseException as error:
            # Perhaps by a signal too, and then nobody knows where it is.
            self._loan.close()
            tell(self._url, error)
            raise

    def _ask(self, call: Call) -> str:
        try:
            return self._driver.ask(call)
        except Error as error:
            raise typed(self._url, error) from error
