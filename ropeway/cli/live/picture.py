"""One moment of a store, as it is drawn and as `--json` writes it. Times are seconds."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ...job.codec import Json
from ...job.instants import Instant
from ...store.values import Counts


class Rates(msgspec.Struct, frozen=True):
    """Jobs a second."""

    added: float = 0.0
    completed: float = 0.0
    failed: float = 0.0


class Latency(msgspec.Struct, frozen=True):
    """From waiting to started, of the jobs that were started in the last minute; those seen, if there were many."""

    p50: float
    p95: float
    seen: int


class QueuePicture(msgspec.Struct, frozen=True):
    name: str
    counts: Counts
    rates: Rates = Rates()
    paused: bool = False
    oldest_waiting: float | None = None
    """The older of the next job to be claimed and the last. With one priority and no `lifo`, the oldest of all."""
    latency: Latency | None = None
    throughput: tuple[float, ...] = ()
    """Completed jobs a second, oldest first; one number for each `throughput_step` seconds."""
    throughput_step: float = 1.0
    missed_events: bool = False
    """More happened lately than was read one by one. The counts and rates are right all the same."""


class RunningJob(msgspec.Struct, frozen=True):
    queue: str
    id: str
    name: str
    worker: str
    seconds: float
    attempt: int
    attempts: int
    progress: Json = None


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
    """How many jobs it moved; 0 for what concerns the whole queue."""
    id: str | None = None
    """The job, or the first of them."""
    names: tuple[str, ...] = ()
    note: str = ""


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
    """The longest running ones of each queue; how many there are in all is in the counts."""
    workers: tuple[WorkerPicture, ...] = ()
    events: tuple[HappenedEvent, ...] = ()
    failures: tuple[Failure, ...] = ()
    more_queues: int = 0
    """Queues that are not watched, because there are too many; name those you want."""
    unknown_queues: tuple[str, ...] = ()
    """Queues that were asked for, and of which the store knows nothing yet."""
    trouble: str | None = None
    """Why the store cannot be read now; everything else is then as it was when it last could."""

    def of(self, queue: str | None) -> Picture:
        """The same moment with the jobs, workers, events and failures of one queue only; None for all."""
        if queue is None:
            return self
        return msgspec.structs.replace(
            self,
            running=tuple(job for job in self.running if job.queue == queue),
            workers=tuple(worker for worker in self.workers if queue in worker.queues),
            events=tuple(event for event in self.events if event.queue == queue),
            failures=tuple(failure for failure in self.failures if failure.queue == queue),
        )


def throughput_of(queues: Sequence[QueuePicture]) -> list[float]:
    """Completed jobs a second of several queues together; the newest numbers are those of the same moment."""
    longest = max((len(queue.throughput) for queue in queues), default=0)
    padded = [(0.0,) * (longest - len(queue.throughput)) + queue.throughput for queue in queues]
    return [sum(together) for together in zip(*padded, strict=True)]
