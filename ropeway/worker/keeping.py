"""What keeps a worker's jobs its own, and its queues in order.

These services run on the keeper's loop, in a thread that handlers cannot block.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from ..client.workers import WORKER_RECORDS, WorkerInfo
from ..errors import StoreUnavailable
from ..job.instants import Milliseconds
from ..store.commands import Find
from ..store.contract import Store
from ..store.values import Lock, Record, StallRules, Ticked, Why
from .completing import is_completing
from .job import Job, Signal
from .service import LONGEST_PAUSE, Service, insist, log

PRESENCE_INTERVAL: Final = 10.0
CLAIM_UNDER_WAY: Final = 60.0
SAFE: Final = 0.95
"""The part of a lock after which its holder must have heard from the store, or stop: before others may begin."""
STOOD_STILL: Final = 0.1
"""Seconds by which a time limit comes late if its process was stopped."""
CENSUS_INTERVAL: Final = 10.0

Tell = Callable[[Job, Signal], None]
"""Carries a signal to a job, from any thread."""


class Renewer(Service):
    """Extends the locks of all jobs that run or wait to be settled, twice per lock duration."""

    def __init__(
        self, store: Store, queue: str, locked: Callable[[], list[Job]], lock: Milliseconds, tell: Tell
    ) -> None:
        self._store = store
        self._queue = queue
        self._locked = locked
        self._lock = lock
        self._tell = tell
        self._asks_again = False

    async def step(self) -> None:
        jobs = [job for job in self._locked() if job.queue.name == self._queue and not is_completing(job)]
        # Counted from here: locks do not wait for an answer that was long on its way, or lay there unread.
        next_at = time.monotonic() + self._lock / 2000
        if not jobs or await self._renew_in_time(jobs):
            await asyncio.sleep(max(0, next_at - time.monotonic()))

    async def _renew_in_time(self, jobs: list[Job]) -> bool:
        """Whether the store answered; if not, those that must stop have been told."""
        patience = self._time_left(jobs)
        asked = time.monotonic()
        try:
            async with asyncio.timeout(patience):
                await self._renew(jobs)
        except (StoreUnavailable, TimeoutError) as trouble:
            why = str(trouble) or type(trouble).__name__
            log.warning("locks in %r were not renewed: %s", self._queue, why)
            # If this process stood still, the answer may have come meanwhile: it asks once more before it gives up.
            stood_still = time.monotonic() - asked > patience + STOOD_STILL
            self._asks_again = stood_still and not self._asks_again
            if not self._asks_again:
                self._fence(jobs)
                # Not as patient as others: a lock does not wait.
                await asyncio.sleep(min(LONGEST_PAUSE, self._lock / 10_000, self._time_left(jobs)))
            return False
        self._asks_again = False
        return True

    async def _renew(self, jobs: list[Job]) -> None:
        asked = time.monotonic()
        locks = [Lock(job.id, job.token) for job in jobs]
        for job, answer in zip(jobs, await self._store.renew(self._queue, locks, self._lock), strict=True):
            if answer.verdict == "done":
                job.confirmed = asked
            elif not job.ended and not is_completing(job):
                if answer.verdict == "missing":
                    self._tell(job, "removed")
                else:
                    self._tell(job, "cancelled" if answer.state == "cancelled" else "lost")

    def _time_left(self, jobs: Iterable[Job]) -> float:
        """Seconds until the first of them must stop, if nobody answers; a little if it is late, half a lock at most."""
        lock = self._lock / 1000
        oldest = time.monotonic() - lock * SAFE
        left = [job.confirmed - oldest for job in jobs if job.confirmed > oldest or job.signal != "lost"]
        return min([lock / 2, *(seconds if seconds > 0 else lock * (1 - SAFE) for seconds in left)])

    def _fence(self, jobs: Iterable[Job]) -> None:
        """A lock that could not be renewed for its whole length may soon be another's."""
        oldest = time.monotonic() - self._lock / 1000 * SAFE
        for job in jobs:
            if job.confirmed <= oldest:
                self._tell(job, "lost")


class Ticker(Service):
    """Promotes, recovers and cleans when it is time, and now and then to be safe."""

    def __init__(
        self,
        store: Store,
        queue: str,
        rules: StallRules,
        interval: float,
        report: Callable[[str, Ticked], None],
    ) -> None:
        self._store = store
        self._queue = queue
        self._rules = rules
        self._interval = interval
        self._report = report

    async def step(self) -> None:
        ticked = await self._store.tick(self._queue, self._rules)
        if ticked.stalled or ticked.given_up or ticked.reset:
            self._report(self._queue, ticked)
        if ticked.more:
            return
        pause = self._interval * random.uniform(0.8, 1.2)  # noqa: S311 - spreads load, keeps no secret
        if ticked.next_at is not None:
            pause = min(pause, max(0.001, (ticked.next_at - ticked.now) / 1000))
        await asyncio.sleep(pause)


class Revocations(Service):
    """Hears of running jobs that were cancelled or removed."""

    def __init__(self, store: Store, queue: str, held: set[Job], tell: Tell) -> None:
        self._store = store
        self._queue = queue
        self._held = held
        self._tell = tell
        self._listener = store.listen("revoked", [queue])
        self._cursor: str | None = None
        self._recent: dict[tuple[str, str], tuple[float, Why]] = {}
        """Revoked locks, and when they were heard of: the claim that took one may still be on its way."""

    async def begin(self) -> None:
        """Nothing that is revoked after this is missed, so it comes before the first claim."""
        self._cursor = (await insist(lambda _: self._store.revoked(self._queue), "revoked")).cursor

    async def run(self) -> None:
        try:
            await super().run()
        finally:
            self._listener.close()

    async def step(self) -> None:
        revoked = await self._store.revoked(self._queue, self._cursor)
        self._cursor = revoked.cursor
        now = time.monotonic()
        self._recent = {lock: heard for lock, heard in self._recent.items() if now - heard[0] < CLAIM_UNDER_WAY}
        self._recent |= {(lock.id, lock.token): (now, lock.why) for lock in revoked.locks}
        if self._recent:
            for job in list(self._held):
                heard = self._recent.get((job.id, job.token)) if job.queue.name == self._queue else None
                if heard is not None:
                    self._tell(job, heard[1])
        if not revoked.locks:
            await self._listener.wait(0.5 if self._recent else 5.0)


class Presence(Service):
    """Says that the worker is there and what it does, for `queue.workers()`."""

    def __init__(self, store: Store, describe: Callable[[], WorkerInfo]) -> None:
        self._store = store
        self._describe = describe

    async def begin(self) -> None:
        """A worker that has started can be seen."""
        await insist(lambda _: self._say(), "presence")

    async def step(self) -> None:
        await asyncio.sleep(PRESENCE_INTERVAL)
        await self._say()

    async def _say(self) -> None:
        info = self._describe()
        record = Record(WORKER_RECORDS, info.id, msgspec.json.encode(info).decode())
        await self._store.remember(record, lasting=round(PRESENCE_INTERVAL * 3000))

    async def leave(self) -> None:
        await self._store.forget(WORKER_RECORDS, self._describe().id)


class Census(Service):
    """Reports job names that wait although no handler of this worker takes them."""

    def __init__(
        self,
        store: Store,
        queue: str,
        names: Callable[[str], tuple[str, ...] | None],
        report: Callable[[str, str, Sequence[str]], None],
    ) -> None:
        self._store = store
        self._queue = queue
        self._names = names
        self._report = report
        self._reported: set[str] = set()

    async def step(self) -> None:
        handled = self._names(self._queue)
        if handled is not None and (await self._store.count(self._queue))["waiting"]:
            page = await self._store.find(Find(self._queue, ("waiting",), limit=100))
            for name in {record.name for record in page.jobs} - {*handled} - self._reported:
                self._reported.add(name)
                self._report(self._queue, name, handled)
        await asyncio.sleep(CENSUS_INTERVAL)
