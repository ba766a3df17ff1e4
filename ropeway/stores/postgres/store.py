"""The PostgreSQL store: each command is a call of a function of the `sql` folder."""

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
from .calls import Calls
from .connection import migrate
from .drivers import driver_here_of, driver_of
from .executor import Executor
from .inside import Joined, JoinedHere, Own, OwnHere
from .inspecting import inspect
from .link import Statement
from .parameters import text
from .spares import SparesHere
from .statements import in_schema
from .target import Target
from .verbs import VERBS
from .wake import Ear, PostgresListener

A = TypeVar("A")

SIDE_BY_SIDE_FROM: Final = 40
"""Measured: each call takes as long as some twenty jobs more."""


class PostgresStore(Store):
    """Jobs in a schema of one database, which any number of machines may use at once."""

    def __init__(self, target: Target) -> None:
        self.url = target.url
        self._target = target
        self._executor = Executor(target)
        self._calls = Calls(target)
        self._spares = SparesHere(target)
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
        """Makes or migrates the schema, also where the URL leaves that to whoever calls this."""
        self._executor.check()
        await migrate(self._target)

    async def open(self) -> None:
        await (await self._executor.settled()).lanes.open()

    async def close(self) -> None:
        self._spares.close()
        await self._executor.close()

    def do(self, command: Command[A], now: Instant | None = None) -> Doing[A]:
        if isinstance(command, Claim) and command.wait:
            return cast(Doing[A], self._claim_listeners.claim(command, self.do, self._listen_to_jobs))
        return cast(Doing[A], VERBS[type(command)](self._executor, command, now))

    # Share a transaction

    async def prepare(self, queue: str) -> None:
        # In a transaction of its own: made in one that stays open, the queue would hold up all who use it first.
        here = await self._executor.settled()
        await here.lanes.keep_functions()
        if queue not in self._calls.queue_ids:
            [(queue_id, database)] = await here.lanes.call(self._prepare, (text(queue),))
            self._calls.database = database
            self._calls.queue_ids[queue] = queue_id

    def own(self) -> Inside:
        return Own(self._calls, self._executor.here().spares, self.url)

    def own_blocking(self) -> BlockingInside:
        self._executor.check()
        return OwnHere(self._calls, self._spares, self.url)

    def join(self, tx: object) -> Inside:
        self._executor.check()
        return Joined(self._calls, tx, driver_of(tx))

    def join_blocking(self, tx: object) -> BlockingInside:
        self._executor.check()
        return JoinedHere(self._calls, tx, driver_here_of(tx))

    # Hear

    def listen(self, topic: Topic, queues: Sequence[str], worker: str | None = None) -> Listener:
        listener = self._listen(topic, queues)
        return listener if worker is None else self._claim_listeners.note(queues[0], worker, listener)

    def _listen_to_jobs(self, queue: str) -> PostgresListener:
        return self._listen("jobs", [queue])

    def _listen(self, topic: Topic, queues: Sequence[str]) -> PostgresListener:
        self._executor.check()
        ear = self._ear_of_worker if topic == "jobs" else lambda: self._executor.here().ear
        return PostgresListener(ear, topic, queues, self._executor.check, self.url)

    def _ear_of_worker(self) -> Ear:
        """Whoever listens to jobs is going to claim some."""
        here = self._executor.here()
        here.make_ready()
        return here.ear
