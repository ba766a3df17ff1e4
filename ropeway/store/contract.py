"""The contract that every store keeps.

Rules that hold for every verb:

- The caller brings ids and tokens, so a call whose answer was lost can be repeated.
- Items of a batch are answered one by one, in order. An exception means that nothing happened.
- A stale token gets the answer `lost`, and the job does not change.
- The store's clock decides. `now` is for tests: it replaces that clock for one call.
- Each verb is one atomic step, its event entry and its counters included.
- What happens to a job stays in the table of `job.moves`.

One handle belongs to one event loop. `sibling()` gives a thread with a loop of its own another handle.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Protocol, Self, TypeGuard

from ..job.codec import JsonText
from ..job.instants import Instant, Milliseconds
from ..job.outcomes import Outcome
from ..job.record import JobRecord, NewJob
from ..job.states import State
from .values import (
    Added,
    Answer,
    Change,
    Claimed,
    ClaimRequest,
    Cleaned,
    Counts,
    Edit,
    Entries,
    History,
    Lock,
    LogPage,
    Metric,
    Page,
    Query,
    Record,
    Remembered,
    Revoked,
    Served,
    Settings,
    Settled,
    StallRules,
    Ticked,
    Topic,
)


class Listener(Protocol):
    """Hears wakes from the moment it was made: make it, look, then wait, and no wake is missed."""

    async def wait(self, timeout: float | None = None) -> bool:
        """True when something may have changed since the last wait; False after `timeout` seconds.

        A wake is a hint, never a promise: look, and wait again.
        """
        ...

    async def claim(self, request: ClaimRequest, timeout: float | None = None) -> Served | None:
        """Waits like `wait`, for `jobs` of one queue, and leaves the request with the store meanwhile.

        A store that can serves it in the very step that brings the jobs, and so saves the trip to fetch them. None:
        it took nothing; claim, and wait again.
        """
        ...

    def interrupt(self) -> None:
        """Ends the waits that are under way, as if their time were over. Call it on the loop that waits."""
        ...

    def close(self) -> None: ...


class AddsHere(Protocol):
    """What a store may offer beside the contract, because the most that it waits for is a disk."""

    def add_here(self, bundles: Sequence[Sequence[NewJob]], *, now: Instant | None = None) -> list[list[Added]]:
        """`Store.add` on the calling thread, which has no event loop and waits. Any number of threads may call it.

        In the main thread a signal can raise at any step of it, and must leave the store in order all the same.
        """
        ...


def offers_add_here(store: object) -> TypeGuard[AddsHere]:
    # Not `isinstance` with a protocol, which takes longer than many an add.
    return hasattr(store, "add_here")


def shares_from(store: object) -> int:
    """How many jobs are worth two calls of one handle, which a store may say that does them side by side."""
    return getattr(store, "shares_from", sys.maxsize)


def domain_of(store: Store, queue: str | None = None) -> str:
    """Names the failure domain of a queue: what becomes unavailable together. Without a queue, that of records.

    One for the whole store, unless its `domain_of` says otherwise, as where queues live on different servers. Not by
    handles: those that were made with one URL are the same store.
    """
    names = getattr(store, "domain_of", None)
    return store.url if names is None or queue is None else names(queue)


class Store(Protocol):
    url: str
    """How to say which store this is, without secrets."""

    async def open(self) -> None:
        """Connects and migrates. Every verb does it by itself; a second call does nothing."""
        ...

    async def close(self) -> None: ...

    def sibling(self) -> Self:
        """Another handle on the same jobs, for the event loop of another thread."""
        ...

    # Produce

    async def add(self, bundles: Sequence[Sequence[NewJob]], *, now: Instant | None = None) -> list[list[Added]]:
        """Stores each bundle whole or not at all; bundles do not depend on each other."""
        ...

    # Run

    async def claim(self, request: ClaimRequest, *, now: Instant | None = None) -> Claimed:
        """Gives the most urgent waiting jobs to one worker, and each to no one else.

        Jobs whose delay has ended are promoted first. Paused queues and names give nothing.
        """
        ...

    async def settle(
        self,
        queue: str,
        outcomes: Sequence[Outcome],
        then: ClaimRequest | None = None,
        *,
        now: Instant | None = None,
    ) -> Settled:
        """Records how attempts ended and claims the next jobs, in one step."""
        ...

    async def renew(
        self, queue: str, locks: Sequence[Lock], lock: Milliseconds, *, now: Instant | None = None
    ) -> list[Answer]:
        """Extends locks to `lock` from now. A lock that ran out but was not yet recovered still holds."""
        ...

    async def update(self, queue: str, changes: Sequence[Change], *, now: Instant | None = None) -> list[Answer]: ...

    # Keep in order

    async def tick(self, queue: str, rules: StallRules, *, now: Instant | None = None) -> Ticked:
        """Promotes what is due, recovers what stalled, removes what retention ends, trims events.

        At most `BATCH` jobs of each kind.
        """
        ...

    # Operate

    async def cancel(
        self, queue: str, ids: Sequence[str], reason: str | None = None, *, now: Instant | None = None
    ) -> list[Answer]:
        """Repeated on a cancelled job it answers `done` with the state `cancelled`."""
        ...

    async def retry(
        self, queue: str, ids: Sequence[str], *, reset: bool = False, now: Instant | None = None
    ) -> list[Answer]:
        """Finished jobs wait again, for one more run; `reset` sets their counters to 0."""
        ...

    async def promote(self, queue: str, ids: Sequence[str], *, now: Instant | None = None) -> list[Answer]: ...

    async def change(self, queue: str, edits: Sequence[Edit], *, now: Instant | None = None) -> list[Answer]: ...

    async def remove(
        self, queue: str, ids: Sequence[str], *, force: bool = False, now: Instant | None = None
    ) -> list[Answer]:
        """Active jobs are refused unless forced; their token is then revoked."""
        ...

    async def configure(
        self,
        queue: str,
        *,
        pause: bool | None = None,
        pause_names: Sequence[str] = (),
        resume_names: Sequence[str] = (),
        max_active: int | None = None,
        now: Instant | None = None,
    ) -> Settings:
        """Changes what is given and answers all settings; `max_active=0` takes the limit away."""
        ...

    async def clear_log(self, queue: str, id: str, *, keep: int = 0) -> Answer:
        """Drops a job's oldest log lines but `keep`, whatever its state."""
        ...

    async def publish(self, queue: str, name: str, data: JsonText, *, now: Instant | None = None) -> None:
        """Writes an event of the application's own into the stream; `data` is an object. Repeated, it writes two."""
        ...

    async def trim_events(self, queue: str, *, keep: int = 0) -> None:
        """Drops the oldest events: at most `keep` stay, and in any case those of the newest move of one job.

        A job's events of one move stay or go together, and `retries-exhausted` is not counted.
        """
        ...

    async def clean(
        self,
        queue: str,
        state: State,
        *,
        older_than: Milliseconds = 0,
        limit: int = 1_000,
        now: Instant | None = None,
    ) -> Cleaned:
        """Removes jobs that finished (or were added, if they are not final) at least that long ago, oldest first.

        Active jobs are never cleaned. Announces `cleaned` when it removed any.
        """
        ...

    async def obliterate(self, queue: str, *, force: bool = False, now: Instant | None = None) -> Cleaned:
        """Pauses the queue and removes everything in it, a batch at a time; call until `more` is False.

        The last call forgets its settings, counters, metrics and events too.
        """
        ...

    # Look

    async def get(self, queue: str, ids: Sequence[str]) -> list[JobRecord | None]: ...

    async def find(self, query: Query) -> Page: ...

    async def count(self, queue: str) -> Counts:
        """From maintained counters; every state is in it."""
        ...

    async def metrics(self, queue: str, *, since: Instant = 0) -> list[Metric]:
        """Per minute, oldest first; minutes in which nothing happened are left out."""
        ...

    async def count_waiting(self, queue: str, priorities: Sequence[int]) -> list[int]:
        """How many jobs of each of these priorities wait."""
        ...

    async def history(self, queue: str, id: str) -> History | None: ...

    async def log(
        self, queue: str, id: str, after: int | None = None, *, limit: int = 100, newest_first: bool = False
    ) -> LogPage | None:
        """Lines of a job's log that come after that number, in the order asked for."""
        ...

    async def settings(self, queue: str) -> Settings: ...

    async def queues(self) -> list[str]:
        """Every queue that has jobs or settings, by name."""
        ...

    async def clock(self) -> Instant: ...

    # Hear

    async def events(
        self, queue: str, after: str | None = None, *, inclusive: bool = False, limit: int = 1_000
    ) -> Entries:
        """Entries in order, from the oldest kept one, or after an id (`inclusive`: from that id on).

        `after="now"` answers no entries but the cursor of the newest.
        """
        ...

    async def revoked(self, queue: str, after: str | None = None) -> Revoked:
        """Locks of running jobs that were cancelled or removed under their workers; kept for a minute or more.

        Without `after` it answers only where to begin.
        """
        ...

    def listen(self, topic: Topic, queues: Sequence[str]) -> Listener:
        """`jobs`: a claim may find more; `events`: there are new entries; `revoked`: so are revoked locks."""
        ...

    # Remember

    async def remember(
        self,
        record: Record,
        *,
        expect: int | None = None,
        lasting: Milliseconds | None = None,
        now: Instant | None = None,
    ) -> Remembered:
        """Writes a record. With `expect` only if its version is that one (0: it does not exist)."""
        ...

    async def recall(self, kind: str, key: str | None = None, *, now: Instant | None = None) -> list[Record]:
        """All records of a kind, or the one with that key; expired ones are left out."""
        ...

    async def forget(self, kind: str, key: str) -> bool:
        """Whether there was one; an expired record counts as none."""
        ...
