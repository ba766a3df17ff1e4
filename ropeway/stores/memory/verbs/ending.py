"""The only functions that make a job final, or remove it."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from ....job.options import readable_options
from ....job.record import JobRecord
from ....job.retention import KEEP_FAILED, Retention
from ....job.states import State
from ....store.values import BATCH
from ..queue_data import QueueData
from ..step import Step


def end(
    step: Step,
    job: JobRecord,
    what: str,
    state: State,
    keep: Retention,
    *,
    detail: dict[str, Any] | None = None,
    common: dict[str, Any] | None = None,
    **changes: Any,
) -> JobRecord:
    """Makes the job final and announces it; call `apply_retention` after the last one of the step.

    `detail` is the event detail of this job, `common` that of all jobs that end in the same way in this step.
    """
    queue, now = step.queue(job.queue), step.now
    final = replace(
        job, state=state, due_at=None, lock_until=None, finished_at=now, expires_at=keep.until(now), **changes
    )
    queue.put(final)
    queue.entry(what, state, common).append((job.id, detail))
    step.ended.append((final, keep))
    return final


def keep_of_failed(job: JobRecord) -> Retention:
    """Retention of a job that ends without a worker: the worker's own rule does not apply."""
    return readable_options(job.options).keep_failed or KEEP_FAILED


def drop(queue: QueueData, job: JobRecord) -> None:
    """Removes the job with its history, and announces it."""
    queue.drop(job.id)
    queue.entry("remove").append((job.id, {"prev": job.state}))


def apply_retention(step: Step, queue: QueueData) -> None:
    """Applies the retention of the jobs that ended in this step.

    Removes at most `BATCH` older jobs; the next job that finishes continues.
    """
    counts: dict[State, int] = {}
    for job, keep in step.ended:
        if keep.removes_at_once:
            drop(queue, job)
        elif keep.count is not None:
            counts[job.state] = min(keep.count, counts.get(job.state, keep.count))
    allowance = BATCH
    for state, count in counts.items():
        keys = queue.index(state).counted
        surplus = keys.first(min(len(keys) - count, allowance)) if len(keys) > count else []
        for _, _, id in surplus:
            drop(queue, queue.jobs[id])
        allowance -= len(surplus)
