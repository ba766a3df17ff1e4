"""The contract of every store.

Rules that hold for every command:

- The caller supplies ids and tokens, so a call whose answer was lost can be repeated.
- Items of a batch are answered one by one, in order. An exception means that nothing happened.
- A stale token gets the answer `lost`, and the job does not change.
- The store's clock decides. `now` is for tests: it replaces that clock for one call.
- Each command is one atomic step, its event entry and its counters included.
- A job changes its state only by the moves of the table in `job.moves`.

One handle belongs to one event loop. `sibling()` makes another handle for a thread with its own loop.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Coroutine, Sequence
from typing import Any, Protocol, Self, TypeAlias, TypeVar

from ..job.codec import JsonText
from ..job.flows import CHILD_STATES, ChildState
from ..job.instants import Instant, Milliseconds
from ..job.marks import Marking
from ..job.outcomes import Outcome
from ..job.record import JobRecord, NewJob
from ..job.stages import Stage
from ..job.states import State
from . import commands
from .commands import Claim, Command, Find
from .offers import Offers
from .values import (
    Added,
    Answer,
    Children,
    Claimed,
    Cleaned,
    Counts,
    Entries,
    History,
    JobChange,
    JobUpdate,
    KeyHolder,
    Lock,
    LogPage,
    Metric,
    Page,
    Record,
    Remembered,
    Revoked,
    ScheduleWrite,
    ScheduleWritten,
    Settings,
    Settled,
    StallRules,
    StoredSchedule,
    Ticked,
    Topic,
)

A = TypeVar("A")
Doing: TypeAlias = Coroutine[Any, Any, A]


class Listener(Protocol):
    """Receives wake-ups from its creation on: create it, claim, then wait, and none is missed."""

    async def wait(self, timeout: float | None = None) -> bool:
        """True if something may have changed since the last wait; False after `timeout` seconds.

        A wake-up is a hint, never a promise: claim or read, and wait again.
        """
        ...

    def interrupt(self) -> None:
        """Ends the waits in progress, as if their timeout had passed. Call it on the loop that waits."""
        ...

    def close(self) -> None: ...


class Store(ABC):
    """A handle on a store of jobs. A store implements `do`; the methods below it only build commands."""

    url: str
    """Identifies the store in messages, without secrets."""

    @property
    def offers(self) -> Offers:
        """Optional features of this store, beyond the contract."""
        return Offers()

    @abstractmethod
    async def open(self) -> None:
        """Connects and migrates. Every command does it implicitly; a second call does nothing."""

    @abstractmethod
    async def close(self) -> None: ...

    @abstractmethod
    def sibling(self) -> Self:
        """Another handle on the same jobs, for the event loop of another thread."""

    @abstractmethod
    def do(self, command: Command[A], now: Instant | None = None) -> Doing[A]:
        """Executes a command of `store.commands`, where the promises of each are documented."""

    @abstractmethod
    def listen(self, topic: Topic, queues: Sequence[str], worker: str | None = None) -> Listener:
        """A listener to a topic of some queues.

        `jobs`: a claim may find more; `events`: there are new entries; `revoked`: new revoked locks; `schedules`: some
        were written.

        With a `worker`, for `jobs` of one queue: that worker's waiting claims on this handle wait by this listener.
        So they need not look for jobs before the next wake-up (claim first), and use up the wake-ups that they see.
        """

    def domain_of(self, queue: str | None = None) -> str:
        """The failure domain of a queue, i.e. what becomes unavailable together. Without a queue, that of records.

        One for the whole store, unless queues are on different servers. Handles made with the same URL share it.
        """
        return self.url

    # Produce

    def add(self, bundles: Sequence[Sequence[NewJob]], *, now: Instant | None = None) -> Doing[list[list[Added]]]:
        return self.do(commands.Add(bundles), now)

    # Run

    def claim(self, request: Claim, *, now: Instant | None = None) -> Doing[Claimed]:
        return self.do(request, now)

    def withdraw(self, request: Claim) -> Doing[Claimed]:
        return self.do(commands.Withdraw(request.queue, request.worker, request.token))

    def settle(
        self, queue: str, outcomes: Sequence[Outcome], then: Claim | None = None, *, now: Instant | None = None
    ) -> Doing[Settled]:
        return self.do(commands.Settle(queue, outcomes, then), now)

    def renew(
        self, queue: str, locks: Sequence[Lock], lock: Milliseconds, *, now: Instant | None = None
    ) -> Doing[list[Answer]]:
        return self.do(commands.Renew(queue, locks, lock), now)

    def update(self, queue: str, updates: Sequence[JobUpdate], *, now: Instant | None = None) -> Doing[list[Answer]]:
        return self.do(commands.Update(queue, updates), now)

    # Maintain

    def tick(self, queue: str, rules: StallRules, *, now: Instant | None = None) -> Doing[Ticked]:
        return self.do(commands.Tick(queue, rules), now)

    # Operate

    def cancel(
        self, queue: str, ids: Sequence[str], reason: str | None = None, *, now: Instant | None = None
    ) -> Doing[list[Answer]]:
        return self.do(commands.Cancel(queue, ids, reason), now)

    def retry(
        self,
        queue: str,
        ids: Sequence[str],
        *,
        reset: bool = False,
        marking: Marking | None = None,
        now: Instant | None = None,
    ) -> Doing[list[Answer]]:
        return self.do(commands.Retry(queue, ids, reset, marking), now)

    def promote(self, queue: str, ids: Sequence[str], *, now: Instant | None = None) -> Doing[list[Answer]]:
        return self.do(commands.Promote(queue, ids), now)

    def change(self, queue: str, changes: Sequence[JobChange], *, now: Instant | None = None) -> Doing[list[Answer]]:
        return self.do(commands.Change(queue, changes), now)

    def remove(
        self, queue: str, ids: Sequence[str], *, force: bool = False, now: Instant | None = None
    ) -> Doing[list[Answer]]:
        return self.do(commands.Remove(queue, ids, force), now)

    def configure(
        self,
        queue: str,
        *,
        pause: bool | None = None,
        pause_names: Sequence[str] = (),
        resume_names: Sequence[str] = (),
        max_active: int | None = None,
        now: Instant | None = None,
    ) -> Doing[Settings]:
        return self.do(commands.Configure(queue, pause, pause_names, resume_names, max_active), now)

    def configure_stages(
        self,
        queue: str,
        *,
        stale_after: Milliseconds | None = None,
        delete_after: Milliseconds | None = None,
        callbacks: Sequence[Stage] | None = None,
        now: Instant | None = None,
    ) -> Doing[Settings]:
        command = commands.Configure(queue, stale_after=stale_after, delete_after=delete_after, callbacks=callbacks)
        return self.do(command, now)

    def write_schedules(
        self, queue: str, writes: Sequence[ScheduleWrite], *, now: Instant | None = None
    ) -> Doing[list[ScheduleWritten]]:
        return self.do(commands.WriteSchedules(queue, writes), now)

    def release_dedupe(self, queue: str, key: str, *, now: Instant | None = None) -> Doing[bool]:
        return self.do(commands.ReleaseDedupe(queue, key), now)

    def clear_log(self, queue: str, id: str, *, keep: int = 0, now: Instant | None = None) -> Doing[Answer]:
        return self.do(commands.ClearLog(queue, id, keep), now)

    def publish(
        self, queue: str, name: str, data: JsonText, job: str | None = None, *, now: Instant | None = None
    ) -> Doing[None]:
        return self.do(commands.Publish(queue, name, data, job), now)

    def trim_events(self, queue: str, *, keep: int = 0, now: Instant | None = None) -> Doing[None]:
        return self.do(commands.TrimEvents(queue, keep), now)

    def clean(
        self,
        queue: str,
        state: State,
        *,
        older_than: Milliseconds = 0,
        limit: int = 1_000,
        now: Instant | None = None,
    ) -> Doing[Cleaned]:
        return self.do(commands.Clean(queue, state, older_than, limit), now)

    def obliterate(self, queue: str, *, force: bool = False, now: Instant | None = None) -> Doing[Cleaned]:
        return self.do(commands.Obliterate(queue, force), now)

    # Read

    def get(self, queue: str, ids: Sequence[str]) -> Doing[list[JobRecord | None]]:
        return self.do(commands.Get(queue, ids))

    def find(self, query: Find) -> Doing[Page]:
        return self.do(query)

    def count(self, queue: str) -> Doing[Counts]:
        return self.do(commands.Count(queue))

    def count_waiting(self, queue: str, priorities: Sequence[int]) -> Doing[list[int]]:
        return self.do(commands.CountWaiting(queue, priorities))

    def metrics(self, queue: str, *, since: Instant = 0) -> Doing[list[Metric]]:
        return self.do(commands.ReadMetrics(queue, since))

    def history(self, queue: str, id: str) -> Doing[History | None]:
        return self.do(commands.ReadHistory(queue, id))

    def children(
        self,
        queue: str,
        id: str,
        *,
        states: tuple[ChildState, ...] = CHILD_STATES,
        after: str | None = None,
        limit: int = 1_000,
    ) -> Doing[Children | None]:
        return self.do(commands.ReadChildren(queue, id, states, after, limit))

    def schedules(
        self, queue: str, ids: Sequence[str] | None = None, *, after: str | None = None, limit: int = 1_000
    ) -> Doing[list[StoredSchedule]]:
        return self.do(commands.ReadSchedules(queue, ids, after, limit))

    def dedupe(self, queue: str, key: str, *, now: Instant | None = None) -> Doing[KeyHolder | None]:
        return self.do(commands.ReadDedupe(queue, key), now)

    def log(
        self, queue: str, id: str, after: int | None = None, *, limit: int = 100, newest_first: bool = False
    ) -> Doing[LogPage | None]:
        return self.do(commands.ReadLog(queue, id, after, limit, newest_first))

    def settings(self, queue: str) -> Doing[Settings]:
        return self.do(commands.ReadSettings(queue))

    def queues(self) -> Doing[list[str]]:
        return self.do(commands.ListQueues())

    def clock(self) -> Doing[Instant]:
        return self.do(commands.ReadClock())

    # Events

    def events(
        self,
        queue: str,
        after: str | None = None,
        *,
        inclusive: bool = False,
        limit: int = 1_000,
        newest_first: bool = False,
    ) -> Doing[Entries]:
        return self.do(commands.ReadEvents(queue, after, inclusive, limit, newest_first))

    def revoked(self, queue: str, after: str | None = None) -> Doing[Revoked]:
        return self.do(commands.ReadRevoked(queue, after))

    # Records

    def remember(
        self,
        record: Record,
        *,
        expect: int | None = None,
        lasting: Milliseconds | None = None,
        now: Instant | None = None,
    ) -> Doing[Remembered]:
        return self.do(commands.Remember(record, expect, lasting), now)

    def recall(self, kind: str, key: str | None = None, *, now: Instant | None = None) -> Doing[list[Record]]:
        return self.do(commands.Recall(kind, key), now)

    def forget(self, kind: str, key: str, *, now: Instant | None = None) -> Doing[bool]:
        return self.do(commands.Forget(kind, key), now)
