"""Watching one queue with as few reads as possible."""

from __future__ import annotations

from collections import deque
from typing import Final

import msgspec

from ...job.codec import Json, decode
from ...job.events import Entry
from ...job.instants import Instant
from ...job.options import StoredOptions
from ...job.record import JobRecord
from ...job.states import STATES, State
from ...store.commands import Find
from ...store.contract import Store
from ...store.values import Counts, Settings
from .event_lines import happened, notable
from .figures import MINUTE, Meter, Moves, Tally, completed_by_minute, rates_of_last_minute
from .memory import JobMemory
from .next_runs import NextRuns
from .picture import Failure, HappenedEvent, NextRun, QueuePicture, Rates, RunningJob
from .running_phases import RunningPhases
from .stream import EventStream, Heard

RUNNING: Final = 20
EVENTS: Final = 40
FAILURES: Final = 10
TREND: Final = 240
MINUTES: Final = 60
SAFETY_LOOK: Final = 10_000
"""Milliseconds after which everything is read again, even without events."""
MISSED_SHOWN: Final = 10_000


class QueueWatch:
    """Costs one read per interval if nothing happened, and about eight if much did."""

    def __init__(self, name: str, *, is_new: bool = False) -> None:
        self.name = name
        self._stream = EventStream(name, is_new=is_new)
        self._memory = JobMemory()
        self._tally = Tally()
        self._meter = Meter()
        self._first_rates = Moves()
        self._minutes: list[float] = []
        self._counts: Counts = dict.fromkeys(STATES, 0)
        self._settings = Settings()
        self._waiting: list[JobRecord] = []
        self._active: list[JobRecord] = []
        self._phases = RunningPhases()
        self._failed: list[JobRecord] = []
        self._notable: deque[Entry] = deque(maxlen=EVENTS)
        self._trend: deque[float] = deque(maxlen=TREND)
        self._next_runs = NextRuns()
        self._looked_at: Instant = 0
        self._read_at: Instant = 0
        self._missed_at: Instant = -MISSED_SHOWN

    async def look(self, store: Store, now: Instant) -> None:
        heard = await self._stream.read(store)
        for entry in heard.entries:
            self._memory.hear(entry)
            self._phases.hear(entry)
        if heard.missed:
            self._phases.forget()
        self._notable.extend(reversed(list(notable(heard.entries, EVENTS))))
        if heard.missed:
            self._missed_at = now
        moves = Moves()
        if heard.is_news or now - self._read_at > SAFETY_LOOK:
            moves = await self._read(store, now, heard)
            self._read_at = now
        await self._next_runs.look(store, self.name, now)
        self._meter.feed(now, moves)
        if not heard.first:
            self._trend.append(moves.per_second(now - self._looked_at).completed)
        self._looked_at = now

    async def _read(self, store: Store, now: Instant, heard: Heard) -> Moves:
        counts = await store.count(self.name)
        self._counts = counts
        moves = await self._count_moves(store, now, first=heard.first)
        self._active = await self._find(store, "active", RUNNING) if self._counts["active"] else []
        await self._phases.look(store, self.name, self._active)
        await self._look_for_oldest(store)
        happenings = {entry.what for entry in heard.entries}
        unsure = heard.first or heard.missed
        if unsure or happenings & {"fail", "give up", "fail by child", "retry by hand", "remove", "cleaned"}:
            self._failed = (
                await self._find(store, "failed", FAILURES, newest_first=True) if self._counts["failed"] else []
            )
        if unsure or happenings & {"paused", "resumed"}:
            self._settings = await store.settings(self.name)
        await self._learn_names(store)
        return moves

    async def _count_moves(self, store: Store, now: Instant, *, first: bool) -> Moves:
        since = now - MINUTES * MINUTE if first else self._tally.since(now)
        metrics = await store.metrics(self.name, since=since)
        moves = self._tally.feed(metrics, now)
        if not first:
            return moves
        self._first_rates = rates_of_last_minute(metrics, now)
        self._minutes = completed_by_minute(metrics, now, MINUTES)
        return Moves()

    async def _look_for_oldest(self, store: Store) -> None:
        """The first and the last waiting job: with mixed priorities or `lifo`, finding the oldest would take a scan."""
        self._waiting = await self._find(store, "waiting", 1) if self._counts["waiting"] else []
        if self._counts["waiting"] > 1:
            self._waiting += await self._find(store, "waiting", 1, newest_first=True)

    async def _learn_names(self, store: Store) -> None:
        for record in [*self._active, *self._failed]:
            self._memory.learn(record)
        shown = [entry.jobs[0][0] for entry in list(self._notable)[-RUNNING:] if entry.jobs]
        unknown = [job_id for job_id in shown if self._memory.name(job_id) is None][-8:]
        wanted = list(dict.fromkeys([*unknown, *self._memory.strangers]))
        if wanted:
            for found in await store.get(self.name, wanted):
                if found is not None:
                    self._memory.learn(found)
            self._memory.strangers.clear()

    async def _find(self, store: Store, state: State, limit: int, *, newest_first: bool = False) -> list[JobRecord]:
        query = Find(self.name, (state,), limit=limit, newest_first=newest_first)
        return (await store.find(query)).jobs

    def picture(self, now: Instant, step: float) -> QueuePicture:
        """`step` is the interval in seconds; 0 for a single picture, which shows minutes."""
        oldest = min((self._memory.waiting_since(record) for record in self._waiting), default=None)
        return QueuePicture(
            self.name,
            self._counts,
            Rates(*(round(rate, 3) for rate in self._meter.rates() or self._first_rates)),
            self._settings.paused,
            None if oldest is None else max(0, now - oldest) / 1000,
            self._memory.latency(now),
            tuple(round(number, 3) for number in (self._trend if step else self._minutes)),
            step or 60.0,
            now - self._missed_at < MISSED_SHOWN,
        )

    def running(self, now: Instant, workers: dict[str, str]) -> list[RunningJob]:
        return [
            RunningJob(
                self.name,
                job.id,
                job.name,
                workers.get(job.worker or "", job.worker or ""),
                max(0, now - (job.started_at or now)) / 1000,
                job.attempts_made + 1,
                _options(job).attempts,
                _progress(job),
                self._phases.of(job.id),
            )
            for job in self._active
        ]

    def holders(self) -> list[str] | None:
        """The worker of each running job; None if there are too many to read."""
        complete = len(self._active) == self._counts["active"]
        return [job.worker or "" for job in self._active] if complete else None

    def events(self) -> list[HappenedEvent]:
        return [happened(self.name, entry, self._memory.name) for entry in self._notable]

    def next_runs(self, now: Instant) -> list[NextRun]:
        return self._next_runs.upcoming(self.name, now)

    def failures(self) -> list[Failure]:
        return [
            Failure(job.finished_at or 0, self.name, job.id, job.name, job.attempts_made, job.reason or "")
            for job in self._failed
        ]


def _options(job: JobRecord) -> StoredOptions:
    try:
        return job.read_options()
    except msgspec.MsgspecError:
        return StoredOptions()


def _progress(job: JobRecord) -> Json:
    try:
        return None if job.progress is None else decode(job.progress)
    except msgspec.MsgspecError:
        return None
