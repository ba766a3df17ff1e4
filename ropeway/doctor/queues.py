"""Checks for reasons why the jobs of a queue do not run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ..client.workers import WorkerInfo
from ..job.dead_letters import is_dead_letter
from ..job.instants import Instant
from ..job.record import JobRecord
from ..showing import length, plural
from ..store.commands import Find
from ..store.contract import Store
from ..store.inspection import Finding
from ..store.values import BATCH, Settings
from .schedules import examine_schedules

PATIENCE: Final = 10_000
"""Milliseconds after which a worker should have handled a due job, or one whose lock has expired."""
SAMPLE: Final = 100
_NAMED: Final = 3
"""Most workers that are named."""


async def examine_queue(
    store: Store, name: str, workers: Sequence[WorkerInfo], now: Instant, most_schedules: int | None = None
) -> list[Finding]:
    """The findings about one queue; one that all is well if there is no other. Looks at all schedules by default."""
    counts = await store.count(name)
    settings = await store.settings(name)
    waiting = (await store.find(Find(name, ("waiting",), limit=SAMPLE))).jobs
    delayed = (await store.find(Find(name, ("delayed",), limit=SAMPLE))).jobs
    active = (await store.find(Find(name, ("active",), limit=BATCH))).jobs
    letters = bool(waiting) and all(map(is_dead_letter, waiting))
    findings = [
        *_paused(name, settings, counts["waiting"]),
        *_letters(name, counts["waiting"] if letters and not workers else 0),
        *_unserved(name, counts["delayed"] + (0 if letters else counts["waiting"]), workers),
        *_unhandled(name, waiting, workers),
        *_overdue(name, delayed, now),
        *_stalled(name, active, now),
        *_full(name, settings, counts["active"], counts["waiting"]),
        *await examine_schedules(store, name, workers, now, most_schedules),
    ]
    served = f"{plural(len(workers), 'worker')}, {counts['waiting']:,} waiting, {counts['active']:,} active"
    return findings or [Finding(f"queue {name}", "ok", served)]


def _paused(name: str, settings: Settings, waiting: int) -> Iterator[Finding]:
    if settings.paused:
        yield Finding(
            f"queue {name}",
            "warning",
            f"it is paused, with {plural(waiting, 'job')} waiting",
            f"ropeway queues resume {name}",
        )
    for job_name in settings.paused_names:
        remedy = f"ropeway queues resume {name} --name {job_name}"
        yield Finding(f"queue {name}", "warning", f"jobs named {job_name!r} are paused", remedy)


def _letters(name: str, number: int) -> Iterator[Finding]:
    """Dead letters may wait without a worker: somebody should look at them."""
    if number:
        remedy = f"ropeway jobs list --queue {name}; then send them back: ropeway jobs redrive {name}"
        yield Finding(f"queue {name}", "warning", f"it has {plural(number, 'dead letter')}", remedy)


def _unserved(name: str, left: int, workers: Sequence[WorkerInfo]) -> Iterator[Finding]:
    if left and not workers:
        remedy = "start one: ropeway worker MODULE:ATTR"
        yield Finding(f"queue {name}", "problem", f"{plural(left, 'job')} to do, and no worker", remedy)
    elif left and all(worker.paused for worker in workers):
        yield Finding(f"queue {name}", "warning", "all of its workers are paused", _resuming(workers))


def _resuming(workers: Sequence[WorkerInfo]) -> str:
    return "; ".join(f"ropeway workers resume {worker.id}" for worker in workers[:_NAMED])


def _unhandled(name: str, waiting: Sequence[JobRecord], workers: Sequence[WorkerInfo]) -> Iterator[Finding]:
    if not workers:
        return
    for job_name in sorted({job.name for job in waiting}):
        if any(worker.handles(name, job_name) for worker in workers):
            continue
        what = f"jobs named {job_name!r} wait, and no worker of this queue has a handler for them"
        remedy = f"deploy a worker that does, or: ropeway jobs cancel --queue {name} --name {job_name}"
        yield Finding(f"queue {name}", "problem", what, remedy)


def _overdue(name: str, delayed: Sequence[JobRecord], now: Instant) -> Iterator[Finding]:
    late = [job for job in delayed if job.due_at is not None and job.due_at < now - PATIENCE]
    if late:
        longest = max(now - (job.due_at or now) for job in late)
        what = f"delayed jobs are overdue, by up to {length(longest / 1000)}"
        yield Finding(f"queue {name}", "problem", what, "see whether its workers are alive and can reach the store")


def _stalled(name: str, active: Sequence[JobRecord], now: Instant) -> Iterator[Finding]:
    lost = [job for job in active if job.lock_until is not None and job.lock_until < now - PATIENCE]
    if lost:
        what = f"{plural(len(lost), 'job')} lost by a worker that died, such as {lost[0].id}"
        yield Finding(f"queue {name}", "problem", what, "start a worker of this queue: it takes them up again")


def _full(name: str, settings: Settings, active: int, waiting: int) -> Iterator[Finding]:
    if waiting and settings.max_active is not None and active >= settings.max_active:
        what = f"its global concurrency of {settings.max_active} is used up, with {plural(waiting, 'job')} waiting"
        yield Finding(
            f"queue {name}", "warning", what, "raise it with queue.set_global_concurrency(), if that is not meant"
        )
