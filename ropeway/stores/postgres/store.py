"""The PostgreSQL store: each command calls one function of the `sql` folder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Self, TypeVar, cast

from ...job.instants import Instant
from ...store.commands import Claim, Command
from ...store.contract import Doing, Listener, Store
from ...store.inspection import Inspection
from ...store.offers import Offers
from ...store.transactions import BlockingInside, Inside
from ...store.values import Topic
from ...store.waiting import ClaimListeners
from .connection import migrate
from .drivers import blocking_driver_of, driver_of
from .executor import Executor
from .inspecting import inspect
from .json_calls import JsonCalls
from .link import Statement
from .parameters import text
from .statements import in_schema
from .target import Target
from .transaction_connections import BlockingTransactionConnections
from .transactions import BlockingJoinedTransaction, BlockingOwnTransaction, JoinedTransaction, OwnTransaction
from .verbs import VERBS
from .wake_connection import PostgresListener, WakeConnection

A = TypeVar("A")

SIDE_BY_SIDE_FROM: Final = 40
"""Jobs from which two calls side by side are faster than one; measured: a call costs as much as twenty jobs."""


class PostgresStore(Store):
    """A handle on the jobs in one schema of a database."""

    def __init__(self, target: Target) -> None:
        self.url = target.url
        self._target = target
        self._executor = Executor(target)
        self._calls = JsonCalls(target)
        self._connections = BlockingTransactionConnections(target)
        self._claim_listeners = ClaimListeners[PostgresListener]()
        self._prepare = Statement(in_schema("SELECT ropeway.queue_id($1), current_database()", target.schema))

    @classmethod
    def from_url(cls, url: str, *, create: bool = True) -> Self:
        """`postgresql://user@host:5432/database`; see `Target` for what else it may say."""
        return cls(Target.from_url(url, create=create))

    @property
    def offers(self) -> Offers:
        return Offers(transactions=self, inspection=self, migration=self, side_by_side_from=SIDE_BY_SIDE_FROM)

    def sibling(self) -> Self:
        return type(self)(self._target)

    def inspect(self) -> Inspection:
        return inspect(self._target)

    async def migrate(self) -> None:
        """Makes or migrates the schema, also with `migrate=off` in the URL."""
        self._executor.check()
        await migrate(self._target)

    async def open(self) -> None:
        await (await self._executor.lasting_resources()).pool.open()

    async def close(self) -> None:
        self._connections.close()
        await self._executor.close()

    def do(self, command: Command[A], now: Instant | None = None) -> Doing[A]:
        if isinstance(command, Claim) and command.wait:
            return cast("Doing[A]", self._claim_listeners.claim(command, self.do, self._listen_to_jobs))
        return cast("Doing[A]", VERBS[type(command)](self._executor, command, now))

    # Share a transaction

    async def prepare(self, queue: str) -> None:
        # In a separate transaction: a queue made in one that stays open would block all other first users of it.
        pool = (await self._executor.lasting_resources()).pool
        await pool.keep_functions()
        if queue not in self._calls.queue_ids:
            [(queue_id, database)] = await pool.call(self._prepare, (text(queue),))
            self._calls.database = database
            self._calls.queue_ids[queue] = queue_id

    def own(self) -> Inside:
        return OwnTransaction(self._calls, self._executor.resources().transaction_connections, self.url)

    def own_blocking(self) -> BlockingInside:
        self._executor.check()
        return BlockingOwnTransaction(self._calls, self._connections, self.url)

    def join(self, tx: object) -> Inside:
        self._executor.check()
        return JoinedTransaction(self._calls, tx, driver_of(tx))

    def join_blocking(self, tx: object) -> BlockingInside:
        self._executor.check()
        return BlockingJoinedTransaction(self._calls, tx, blocking_driver_of(tx))

    # Listen

    def listen(self, topic: Topic, queues: Sequence[str], worker: str | None = None) -> Listener:
        listener = self._listen(topic, queues)
        return listener if worker is None else self._claim_listeners.note(queues[0], worker, listener)

    def _listen_to_jobs(self, queue: str) -> PostgresListener:
        return self._listen("jobs", [queue])

    def _listen(self, topic: Topic, queues: Sequence[str]) -> PostgresListener:
        self._executor.check()
        wakes = self._wakes_for_worker if topic == "jobs" else lambda: self._executor.resources().wakes
        return PostgresListener(wakes, topic, queues, self._executor.check, self.url)

    def _wakes_for_worker(self) -> WakeConnection:
        """Also warms up the links: a listener to jobs is going to claim."""
        resources = self._executor.resources()
        resources.warm_up()
        return resources.wakes
