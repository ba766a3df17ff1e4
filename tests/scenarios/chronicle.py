"""What a queue's event stream tells, checked against the table of moves while it is read."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Any

from ropeway import JobHandle, Queue
from ropeway.job.events import Entry
from ropeway.job.instants import instant_of
from ropeway.job.record import JobRecord
from ropeway.job.states import STATES, State
from ropeway.store.commands import Find
from ropeway.testing.ledger import Ledger


class Chronicle:
    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._ledger = Ledger()
        self.entries: list[Entry] = []

    async def read(self) -> Ledger:
        """Reads on to the newest entry. Read often: the stream keeps only some."""
        while True:
            page = await self._queue.store.events(self._queue.name, self._ledger.cursor)
            assert not page.gap, "events were trimmed before this chronicle read them"
            for stored in page.entries:
                self._ledger.read(stored.entry)
                self.entries.append(stored.entry)
            self._ledger.cursor = page.cursor
            if not page.entries:
                assert not self._ledger.problems
                return self._ledger

    async def of(self, what: str) -> list[tuple[str, dict[str, Any]]]:
        """Job ids and details of all entries of one kind, in order."""
        await self.read()
        return [
            (job_id, {**(entry.detail or {}), **(detail or {})})
            for entry in self.entries
            if entry.what == what
            for job_id, detail in entry.jobs
        ]

    def count(self, what: str) -> Counter[str]:
        """How often each job is in entries of one kind, as far as it has read."""
        return Counter(job_id for entry in self.entries if entry.what == what for job_id, _ in entry.jobs)

    async def ids(self, what: str) -> list[str]:
        return [job_id for job_id, _ in await self.of(what)]

    async def completed(self) -> int:
        return (await self.read()).completions.total()


async def all_jobs(queue: Queue, *states: State) -> list[JobRecord]:
    jobs: list[JobRecord] = []
    after = None
    while True:
        page = await queue.store.find(Find(queue.name, states or STATES, limit=1_000, after=after))
        jobs += page.jobs
        if page.next is None:
            return jobs
        after = page.next


async def check_counters(queue: Queue) -> None:
    """Counters equal a recount."""
    counts: dict[State, int] = {}
    recount: dict[State, int] = {}
    # What a killed process sent last may still take effect: then both are read again.
    while counts != await queue.counts():
        counts = await queue.counts()
        recount = dict.fromkeys(STATES, 0)
        for job in await all_jobs(queue):
            recount[job.state] += 1
    assert counts == recount


async def lock_of(job: JobHandle) -> datetime:
    """When it ends, as it stands now."""
    lock = (await job.refresh()).lock_until
    assert lock is not None, f"{job} is not active"
    return lock


async def renewed_after(job: JobHandle, moment: datetime) -> bool:
    [record] = await job.queue.store.get(job.queue.name, [job.id])
    return record is not None and (record.renewed_at or 0) > instant_of(moment)
