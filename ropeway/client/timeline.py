"""The timeline of a job."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..job.instants import Instant, instant_of
from ..store.values import History
from .queue import Queue
from .snapshot import Snapshot


class Step(NamedTuple):
    at: Instant
    name: str
    """The name of an event, or `attempt failed` if its event is no longer kept."""
    data: dict[str, Any]


async def timeline_of(queue: Queue, job: Snapshot, history: History) -> list[Step]:
    """Built from the kept events, and for the time before them from the job's own record and history."""
    events = [
        Step(event.at, event.name, event.data)
        async for event in queue.events("start", follow=False)
        if event.job_id == job.id
    ]
    # A store may write one event entry for several adds, at the time of the last: it may be younger than the job.
    is_added = any(step.name == "added" for step in events)
    remembered = [
        *([] if is_added else [Step(instant_of(job.created_at), "added", {"name": job.name})]),
        *(
            Step(failed.at, "attempt failed", {"attempt": failed.attempt, "reason": failed.reason})
            for failed in history.failures
        ),
    ]
    if not events and job.finished_at is not None:
        remembered.append(Step(instant_of(job.finished_at), job.state, {}))
    first = events[0].at if events else None
    return [*(step for step in remembered if first is None or step.at < first), *events]
