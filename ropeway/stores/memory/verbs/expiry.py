"""Jobs that were not started in time."""

from __future__ import annotations

from ....job.failure import EXPIRED_REASON
from ....store.values import BATCH
from ..queue_data import QueueData
from ..step import Step
from .ending import end, keep_of_failed


def expire_due(step: Step, queue: QueueData) -> int:
    """Fails at most `BATCH` jobs whose deadline has passed; call `conclude` after it."""
    late = queue.deadlines.due(step.now, BATCH)
    for id in late:
        job = queue.jobs[id]
        end(
            step,
            job,
            "expire",
            "failed",
            keep_of_failed(job),
            detail={"reason": EXPIRED_REASON},
            token=None,
            reason=EXPIRED_REASON,
        )
    return len(late)
