"""Why a job is not running, as far as the store can say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...client.snapshot import Snapshot
from ...client.workers import WorkerInfo
from ...job.instants import Instant, instant_of
from ...job.steps import Wait
from ...showing import plural
from ...store.values import Children, Counts, FailedAttempt, Settings
from .formats import duration


def reasons(
    job: Snapshot,
    settings: Settings,
    counts: Counts,
    workers: Sequence[WorkerInfo],
    children: Children | None,
    failures: Sequence[FailedAttempt],
    now: Instant,
) -> list[str]:
    """Sentences; none for a job that runs or has ended. `workers` are those of its queue."""
    if job.state == "delayed":
        return _of_delayed(job, failures, now)
    if job.state == "waiting-children" and children is not None:
        left = children.counts.get("pending", 0)
        return [f"It waits for {'1 child' if left == 1 else f'{left:,} children'} to end."]
    if job.state != "waiting":
        return []
    held = [*_of_queue(job, settings, counts), *_of_workers(job, workers)]
    return held or ["It waits for its turn: jobs of higher priority, and those added before it, go first."]


def _of_queue(job: Snapshot, settings: Settings, counts: Counts) -> Iterator[str]:
    if settings.paused:
        yield "The queue is paused."
    if job.name in settings.paused_names:
        yield "Jobs of this name are paused."
    if settings.max_active is not None and counts["active"] >= settings.max_active:
        yield f"As many jobs run as the queue may have at once: {settings.max_active:,}."


def _of_workers(job: Snapshot, workers: Sequence[WorkerInfo]) -> Iterator[str]:
    fitting = [worker for worker in workers if worker.handles(job.queue, job.name)]
    if not workers:
        yield "No worker in Python serves this queue; workers over HTTP are known by their jobs alone."
    elif not fitting:
        yield f"None of the {plural(len(workers), 'worker')} of this queue takes jobs of this name."
    elif all(worker.paused for worker in fitting):
        yield "All workers that take it are paused."
    elif all(worker.running >= worker.concurrency for worker in fitting):
        yield "All slots of the workers that take it are in use."


def _of_delayed(job: Snapshot, failures: Sequence[FailedAttempt], now: Instant) -> list[str]:
    found = []
    if job.waits_for is not None:
        found.append(_of_wait(job.waits_for, now))
    if job.due_at is not None:
        left = instant_of(job.due_at) - now
        if _has_just_failed(job, failures):
            found.append(f"Attempt {job.attempts_made} failed; the next one comes after a pause.")
        if left > 0 and job.waits_for is None:
            found.append(f"It is due in {duration(left)}.")
        elif left <= 0:
            found.append("It is due now: a worker of the queue makes it wait within seconds.")
    return found


def _of_wait(wait: Wait, now: Instant) -> str:
    if wait.until is None:
        return f"It waits for the signal {wait.signal!r}."
    return f"It waits for the signal {wait.signal!r}, for {duration(max(0, instant_of(wait.until) - now))} at most."


def _has_just_failed(job: Snapshot, failures: Sequence[FailedAttempt]) -> bool:
    """False if the job was started again since it failed last: then it sleeps, or was postponed."""
    if not failures or job.started_at is None:
        return False
    return failures[-1].started_at == instant_of(job.started_at)
