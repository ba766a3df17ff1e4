"""A bounded memory of jobs seen in events: their names, and when they began to wait."""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import Final, TypeVar

from ...job.events import Entry
from ...job.instants import Instant
from ...job.record import JobRecord
from .figures import percentile
from .picture import Latency

T = TypeVar("T")

JOBS: Final = 20_000
JOBS_PER_ENTRY: Final = 1_000
"""Jobs of one entry that are remembered; the rest is only counted."""
WAITS: Final = 1_000
LATELY: Final = 60_000


class JobMemory:
    """Drops the oldest job when there are too many."""

    def __init__(self) -> None:
        self._names: OrderedDict[str, str] = OrderedDict()
        self._ready: OrderedDict[str, Instant] = OrderedDict()
        self._waits: deque[tuple[Instant, int]] = deque(maxlen=WAITS)
        self.strangers: deque[str] = deque(maxlen=8)
        """The newest started jobs whose beginning of waiting is unknown."""

    def hear(self, entry: Entry) -> None:
        for job_id, detail in entry.jobs[:JOBS_PER_ENTRY]:
            if entry.what == "add":
                _keep(self._names, job_id, entry.data_of(detail).get("name", ""))
            if entry.to == "waiting":
                _keep(self._ready, job_id, entry.at)
            elif entry.to == "active":
                self._start(job_id, entry.at)

    def learn(self, record: JobRecord) -> None:
        """Adds facts from a job record that events did not provide."""
        if record.id not in self._names:
            _keep(self._names, record.id, record.name)
        if record.id in self.strangers:
            self.strangers.remove(record.id)
            if record.started_at is not None and record.attempts_started == 1:
                self._waits.append((record.started_at, record.started_at - record.created_at))

    def name(self, job_id: str) -> str | None:
        return self._names.get(job_id)

    def waiting_since(self, record: JobRecord) -> Instant:
        return self._ready.get(record.id, record.created_at)

    def latency(self, now: Instant) -> Latency | None:
        """Waiting times of recently started jobs."""
        waits = [wait for at, wait in self._waits if at > now - LATELY]
        p50, p95 = percentile(waits, 0.5), percentile(waits, 0.95)
        return None if p50 is None or p95 is None else Latency(p50 / 1000, p95 / 1000, len(waits))

    def _start(self, job_id: str, at: Instant) -> None:
        ready = self._ready.pop(job_id, None)
        if ready is not None:
            self._waits.append((at, max(0, at - ready)))
        else:
            self.strangers.append(job_id)


def _keep(known: OrderedDict[str, T], job_id: str, value: T) -> None:
    known[job_id] = value
    if len(known) > JOBS:
        known.popitem(last=False)
