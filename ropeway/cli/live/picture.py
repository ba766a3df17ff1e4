"""One moment of a store as plain values, for drawing and for `--json`. Times are seconds."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ...job.codec import Json
from ...job.instants import Instant
from ...store.values import Counts


class Rates(msgspec.Struct, frozen=True):
    """Jobs per second."""

    added: float = 0.0
    completed: float = 0.0
    failed: float = 0.0


class Latency(msgspec.Struct, frozen=True):
    """Time from waiting to start, of jobs started in the last minute; of the observed ones, if there were many."""

    p50: float
    p95: float
    seen: int


class QueuePicture(msgspec.Struct, frozen=True):
    name: str
    counts: Counts
    rates: Rates = Rates()
    paused: bool = False
    oldest_waiting: float | None = None
    """Age of the older of the first and the last waiting job. With one priority and no `lifo`, of the oldest."""
    latency: Latency | None = None
    throughput: tuple[float, ...] = ()
    """Completed jobs per second, oldest first; one number for each `throughput_step` seconds."""
    throughput_step: float = 1.0
    missed_events: bool = False
    """True if not all recent events were read. Counts and rates are exact all the same."""


class RunningPhase(msgspec.Struct, frozen=True):
    """The phase of a pipeline that runs now."""

    name: str
    number: int
    """From 1."""
    of: int


class RunningJob(msgspec.Struct, frozen=True):
    queue: str
    id: str
    name: str
    worker: str
    seconds: float
    attempt: int
    attempts: int
    progress: Json = None
    phase: RunningPhase | None = None


class WorkerPicture(msgspec.Struct, frozen=True):
    name: str
    host: str
    pid: int
    queues: tuple[str, ...]
    running: int
    concurrency: int
    seconds: float
    paused: bool = False


class HappenedEvent(msgspec.Struct, frozen=True):
    """One step in a queue, which may have moved many jobs."""

    at: Instant
    queue: str
    event: str
    count: int
    """The number of jobs it moved; 0 for an event of the whole queue."""
    id: str | None = None
    """The job, or the first of several."""
    names: tuple[str, ...] = ()
    note: str = ""


class NextRun(msgspec.Struct, frozen=True):
    """The next run of a schedule."""

    at: Instant
    queue: str
    schedule: str
    name: str
    seconds: float
    """Time until then; negative if it is late."""


class Failure(msgspec.Struct, frozen=True):
    at: Instant
    queue: str
    id: str
    name: str
    attempts: int
    reason: str


class Picture(msgspec.Struct, frozen=True):
    at: Instant
    store: str
    queues: tuple[QueuePicture, ...] = ()
    running: tuple[RunningJob, ...] = ()
    """The longest running jobs of each queue; their total number is in the counts."""
    workers: tuple[WorkerPicture, ...] = ()
    events: tuple[HappenedEvent, ...] = ()
    failures: tuple[Failure, ...] = ()
    next_runs: tuple[NextRun, ...] = ()
    """Of the schedules, the earliest first."""
    more_queues: int = 0
    """Number of queues that are not watched, because there are too many; use --queue to select."""
    unknown_queues: tuple[str, ...] = ()
    """Requested queues that do not exist yet."""
    trouble: str | None = None
    """Why the store cannot be read now; everything else is then from the last successful read."""

    def of(self, queue: str | None) -> Picture:
        """The same picture with the jobs, workers, events and failures of one queue only; None for all."""
        if queue is None:
            return self
        return msgspec.structs.replace(
            self,
            running=tuple(job for job in self.running if job.queue == queue),
            workers=tuple(worker for worker in self.workers if queue in worker.queues),
            events=tuple(event for event in self.events if event.queue == queue),
            failures=tuple(failure for failure in self.failures if failure.queue == queue),
            next_runs=tuple(run for run in self.next_runs if run.queue == queue),
        )


def throughput_of(queues: Sequence[QueuePicture]) -> list[float]:
    """Completed jobs per second of several queues together, aligned at the newest number."""
    longest = max((len(queue.throughput) for queue in queues), default=0)
    padded = [(0.0,) * (longest - len(queue.throughput)) + queue.throughput for queue in queues]
    return [sum(together) for together in zip(*padded, strict=True)]
