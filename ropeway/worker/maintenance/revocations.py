"""Stopping running jobs that were cancelled or removed."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Final

from ...errors import StoreError
from ...store.contract import Store
from ...store.values import Why
from ..job import Interrupt, Job
from ..service import Service, until_answered

CLAIM_UNDER_WAY: Final = 60.0
"""Seconds for which a revoked lock is remembered: the answer of the claim that took it may still be in flight."""

REASON_LIMIT: Final = 1.0
"""Seconds that a job may run on while the reason of its cancellation is read."""


class Revocations(Service):
    """Reads the store's list of revoked locks, and interrupts the jobs that this worker holds under them."""

    def __init__(self, store: Store, queue: str, held: set[Job], interrupt: Interrupt) -> None:
        self._store = store
        self._queue = queue
        self._held = held
        self._interrupt = interrupt
        self._listener = store.listen("revoked", [queue])
        self._cursor: str | None = None
        self._recent: dict[tuple[str, str], tuple[float, Why]] = {}
        """Revoked locks with the time they were read: the answer of the claim that took one may still be in flight."""

    async def begin(self) -> None:
        """Takes the starting cursor. Nothing revoked after this is missed, so call it before the first claim."""
        self._cursor = (await until_answered(lambda _: self._store.revoked(self._queue), "revoked")).cursor

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
            held = [job for job in list(self._held) if job.queue.name == self._queue]
            found: list[tuple[Job, Why]] = [
                (job, heard[1]) for job in held if (heard := self._recent.get((job.id, job.token))) is not None
            ]
            await self._read_reasons([job for job, why in found if why == "cancelled"])
            for job, why in found:
                self._interrupt(job, why)
        if not revoked.locks:
            await self._listener.wait(0.5 if self._recent else 5.0)

    async def _read_reasons(self, jobs: list[Job]) -> None:
        """Reads why they were cancelled, for their log lines. Without an answer they are stopped all the same."""
        unread = {job.id: job.timing for job in jobs if job.timing is not None and job.timing.revoked_for is None}
        if not unread:
            return
        with suppress(StoreError, TimeoutError):
            async with asyncio.timeout(REASON_LIMIT):
                records = await self._store.get(self._queue, list(unread))
            for timing, record in zip(unread.values(), records, strict=True):
                timing.revoked_for = (record and record.reason) or ""
