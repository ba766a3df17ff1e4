"""Lock renewal, in the maintenance thread."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Final

from ...errors import StoreUnavailable
from ...job.instants import Milliseconds
from ...store.contract import Store
from ...store.values import Lock
from ..completing import is_completing
from ..job import Interrupt, Job
from ..service import LONGEST_PAUSE, Service, log

SAFE: Final = 0.95
"""Fraction of the lock duration without an answer after which a job is stopped: before another worker may claim it."""
STOOD_STILL: Final = 0.1
"""Seconds by which a timeout must be late to conclude that the process was suspended."""


class Renewer(Service):
    """Extends the locks of one queue's jobs that run or wait to be settled, twice per lock duration."""

    def __init__(
        self, store: Store, queue: str, locked: Callable[[], list[Job]], lock: Milliseconds, interrupt: Interrupt
    ) -> None:
        self._store = store
        self._queue = queue
        self._locked = locked
        self._lock = lock
        self._interrupt = interrupt
        self._asks_again = False

    async def step(self) -> None:
        jobs = [job for job in self._locked() if job.queue.name == self._queue and not is_completing(job)]
        # Measured from before the call: locks expire while a slow answer is in flight or unread.
        next_at = time.monotonic() + self._lock / 2000
        if not jobs or await self._renew_in_time(jobs):
            await asyncio.sleep(max(0, next_at - time.monotonic()))

    async def _renew_in_time(self, jobs: list[Job]) -> bool:
        """True if the store answered; if not, jobs that must stop have been interrupted."""
        patience = self._time_left(jobs)
        asked = time.monotonic()
        try:
            async with asyncio.timeout(patience):
                await self._renew(jobs)
        except (StoreUnavailable, TimeoutError) as trouble:
            why = str(trouble) or type(trouble).__name__
            log.warning("locks in %r were not renewed: %s", self._queue, why)
            # If this process was suspended, the answer may have arrived meanwhile: ask once more before giving up.
            stood_still = time.monotonic() - asked > patience + STOOD_STILL
            self._asks_again = stood_still and not self._asks_again
            if not self._asks_again:
                self._fence(jobs)
                # Shorter than the pause of other services: locks go on expiring.
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
                    self._interrupt(job, "removed")
                else:
                    self._interrupt(job, "cancelled" if answer.state == "cancelled" else "lost")

    def _time_left(self, jobs: Iterable[Job]) -> float:
        """Seconds until the first job must stop if the store does not answer: at most half a lock, and never zero."""
        lock = self._lock / 1000
        oldest = time.monotonic() - lock * SAFE
        left = [job.confirmed - oldest for job in jobs if job.confirmed > oldest or job.interruption != "lost"]
        return min([lock / 2, *(seconds if seconds > 0 else lock * (1 - SAFE) for seconds in left)])

    def _fence(self, jobs: Iterable[Job]) -> None:
        """Signals jobs whose lock was not confirmed for nearly its duration: another worker may soon claim them."""
        oldest = time.monotonic() - self._lock / 1000 * SAFE
        for job in jobs:
            if job.confirmed <= oldest:
                self._interrupt(job, "lost")
