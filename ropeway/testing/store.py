"""`FakeStore`, for tests: a memory store on a fake clock, which records every added job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self, TypeVar, cast

from msgspec.structs import replace

from ..client.queue import Queue
from ..errors import InvalidOption
from ..job.instants import Instant
from ..job.record import NewJob
from ..store.commands import Add, Claim, Command, Update, WriteSchedules
from ..store.contract import Listener, Store
from ..store.offers import Offers
from ..store.url import connect
from ..store.values import Added, Answer, ScheduleWritten, Topic
from ..store.waiting import ClaimListener, ClaimListeners
from ..worker.maintenance.thread import CleanUp, MaintenanceThread, MakeServices
from .adds import AddedJob, added_job
from .clock import FakeClock, OnClock
from .listening import PollingListener
from .maintenance import LoopMaintenance
from .proxy import StoreProxy
from .transactions.inside import BlockingInside, Inside
from .transactions.libraries import transactional
from .transactions.own import (
    AwaitedOwnTransaction,
    Database,
    FakeTransaction,
    OwnTransaction,
    SyncFakeTransaction,
    own_of,
)
from .transactions.pending_adds import StoresAtCommit

A = TypeVar("A")


class FakeStore(StoreProxy, StoresAtCommit):
    """An empty, private store for a test: `Queue("emails", store=FakeStore())`.

    `time` is its clock; a worker that runs on it lives by that clock too. Jobs that are added with `tx`, of SQLAlchemy,
    Django or `queue.transaction()`, come when it is committed, as in production.
    """

    def __init__(self, time: FakeClock | None = None, *, like: FakeStore | None = None) -> None:
        super().__init__(connect("memory://") if like is None else like.inner.sibling())
        self.url = "memory:// (of a test)"
        self.time = time or FakeClock()
        self.time.follow(self)
        self.jobs_added: list[AddedJob] = [] if like is None else like.jobs_added
        """Every job that was ever added to any queue of this store, in order."""
        self.database: Database = Database() if like is None else like.database
        self._claim_listeners: ClaimListeners[ClaimListener] = ClaimListeners()

    def now(self, given: Instant | None) -> Instant:
        return self.time.instant if given is None else given

    def next_instant(self) -> Instant | None:
        """When something happens by itself: a delay, a deadline, a retention or a tick; the past while a job runs."""
        return cast(OnClock, self.inner).next_instant()

    def next_tick_at(self) -> Instant | None:
        """The same while jobs run: when the worker's maintenance will have something to do."""
        return cast(OnClock, self.inner).next_tick_at()

    def sibling(self) -> Self:
        return type(self)(self.time, like=self)

    def maintenance(self, make: MakeServices, clean_up: CleanUp) -> MaintenanceThread:
        return LoopMaintenance(self.time, make, clean_up)

    @property
    def offers(self) -> Offers:
        return Offers(transactions=self, maintenance=self.maintenance)

    async def do(self, command: Command[A], now: Instant | None = None) -> A:
        claim: object = command
        if isinstance(claim, Claim) and claim.wait:
            # Not by the memory store: the clock may advance while it waits.
            return cast(A, await self._claim_listeners.claim(claim, self.do, self._listen_to_jobs))
        at = self.now(now)
        answer = await super().do(command, at)
        if isinstance(command, Add):
            for bundle, verdicts in zip(command.bundles, cast(list[list[Added]], answer), strict=True):
                self._note(bundle, verdicts, at)
        elif isinstance(command, Update):
            for update, verdict in zip(command.updates, cast(list[Answer], answer), strict=True):
                if verdict.verdict == "done":
                    self._note_children(update.adds, at)
        elif isinstance(command, WriteSchedules):
            for write, written in zip(command.writes, cast(list[ScheduleWritten], answer), strict=True):
                if written.verdict == "done":
                    self._note(write.adds, written.added, at)
        return answer

    def listen(self, topic: Topic, queues: Sequence[str], worker: str | None = None) -> Listener:
        if worker is None:
            return self._listen(topic, queues)
        return self._claim_listeners.note(queues[0], worker, self._listen_to_jobs(queues[0]))

    def _listen_to_jobs(self, queue: str) -> ClaimListener:
        return self._listen("jobs", [queue])

    def _listen(self, topic: Topic, queues: Sequence[str]) -> PollingListener:
        return PollingListener(cast(ClaimListener, self.inner.listen(topic, queues)))

    async def add_committed(self, jobs: Sequence[NewJob], at: Instant) -> None:
        """Stores jobs that were added at that instant, in a transaction that is committed now."""
        late = self.time.instant - at
        # The delay of a parent begins when its children have ended.
        stored = [replace(job, delay=max(0, job.delay - late)) if late and not job.children else job for job in jobs]
        is_flow = any(job.children for job in jobs)
        answers = await self.inner.add([stored] if is_flow else [[job] for job in stored], now=self.time.instant)
        self._note(jobs, [answer for bundle in answers for answer in bundle], at)

    def _note(self, jobs: Sequence[NewJob], answers: Sequence[Added], at: Instant) -> None:
        created = [job for job, answer in zip(jobs, answers, strict=True) if answer.verdict == "created"]
        self.jobs_added += [added_job(job, at) for job in created]

    def _note_children(self, jobs: Sequence[NewJob], at: Instant) -> None:
        """Of children that a job adds again when it begins again, only the first add counts."""
        if jobs:
            known = {(job.queue, job.id, job.parents) for job in self.jobs_added}
            self.jobs_added += [added_job(job, at) for job in jobs if (job.queue, job.id, job.parents) not in known]

    # Transactions

    async def prepare(self, queue: str) -> None:
        """Has nothing to prepare."""

    def own(self) -> Inside:
        return Inside(self, None, AwaitedOwnTransaction(self.database))

    def own_blocking(self) -> BlockingInside:
        return BlockingInside(self, None, OwnTransaction(self.database))

    def join(self, tx: object) -> Inside:
        return Inside(self, tx, own_of(tx, FakeTransaction, self.database) or transactional(tx, awaited=True))

    def join_blocking(self, tx: object) -> BlockingInside:
        return BlockingInside(
            self, tx, own_of(tx, SyncFakeTransaction, self.database) or transactional(tx, awaited=False)
        )


def fake_store(queue: Queue) -> FakeStore:
    """The queue's store; refuses any other than a `FakeStore`, which may hold real jobs."""
    store: Store = queue.store
    if not isinstance(store, FakeStore):
        raise InvalidOption(
            "queue",
            f"{queue.name!r} is on {store.url}, which is no test's store: "
            "make it with store=FakeStore(), or put the test in `with isolated(queue):`",
        )
    return store
