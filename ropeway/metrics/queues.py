"""Reading the numbers of one queue."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from ..client.known_schedules import KnownSchedules
from ..client.workers import WorkerInfo
from ..job.dead_letters import is_dead_letter
from ..job.instants import Instant, Milliseconds
from ..job.options import readable_options
from ..job.record import JobRecord
from ..job.states import STATES
from ..store.commands import Find
from ..store.contract import Store
from ..store.values import Counts, Record
from . import families
from .page import Page
from .totals import Sums, Totals

SCHEDULES_AGAIN: Final[Milliseconds] = 60_000
"""New schedules are seen after this time at most."""


class QueueReading(msgspec.Struct, frozen=True):
    """The numbers of a queue at one time."""

    queue: str
    counts: Counts
    totals: Sums
    oldest: Milliseconds
    paused: bool
    workers: int
    slots: int
    busy: int
    schedules: int
    lag: Milliseconds
    dead_letters: int

    def put(self, page: Page) -> None:
        queue = self.queue
        for kind, family in families.TOTALS.items():
            page.put(family, self.totals.counts[kind], queue=queue)
        for state in STATES:
            page.put(families.JOBS, self.counts[state], queue=queue, state=state)
        page.put(families.OLDEST, self.oldest / 1000, queue=queue)
        page.put(families.PAUSED, int(self.paused), queue=queue)
        page.put(families.WORKERS, self.workers, queue=queue)
        page.put(families.SLOTS, self.slots, queue=queue)
        page.put(families.BUSY, self.busy, queue=queue)
        page.put_histogram(families.WAIT, self.totals.timings.wait, queue=queue)
        page.put_histogram(families.RUN, self.totals.timings.run, queue=queue)
        page.put(families.SCHEDULES, self.schedules, queue=queue)
        page.put(families.LAG, self.lag / 1000, queue=queue)
        page.put(families.DEAD_LETTERS, self.dead_letters, queue=queue)


class QueueReader:
    """Reads one queue: about seven commands, whatever the number of its jobs."""

    def __init__(self, store: Store, queue: str, record: Record | None) -> None:
        """`record` is that of its totals."""
        self._store = store
        self._queue = queue
        self._totals = Totals(store, queue, record)
        self._schedules = KnownSchedules(SCHEDULES_AGAIN)
        self._seen: dict[str, Instant] = {}

    async def read(self, now: Instant, workers: Iterable[WorkerInfo], *, exists: bool) -> QueueReading:
        totals = await self._totals.read(now, lasting=exists)
        counts = await self._store.count(self._queue)
        waiting = await self._first_and_last(counts["waiting"])
        self._seen = {job.id: self._seen.get(job.id, now) for job in waiting}
        settings = await self._store.settings(self._queue)
        await self._schedules.look(self._store, self._queue, now)
        serving = [worker for worker in workers if self._queue in worker.queues]
        return QueueReading(
            self._queue,
            counts,
            totals,
            max((0, *(now - self._waits_since(job) for job in waiting))),
            settings.paused,
            len(serving),
            sum(worker.concurrency for worker in serving),
            sum(worker.running for worker in serving),
            len(self._schedules.by_id),
            self._schedules.lag(now),
            counts["waiting"] if waiting and is_dead_letter(waiting[0]) else 0,
        )

    async def _first_and_last(self, number: int) -> list[JobRecord]:
        """With mixed priorities or `lifo`, finding the oldest would take a scan."""
        found: list[JobRecord] = []
        for newest_first in (False, True)[:number]:
            found += (await self._store.find(Find(self._queue, ("waiting",), limit=1, newest_first=newest_first))).jobs
        return found

    def _waits_since(self, job: JobRecord) -> Instant:
        if job.started_at is not None:
            return job.started_at
        delay = readable_options(job.options).delay
        if delay is None or job.children:
            # Since an instant, or the end of its children, which the store has forgotten.
            return self._seen[job.id]
        return job.created_at + delay
