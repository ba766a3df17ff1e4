"""Retention of a whole queue: finished jobs become stale, and are deleted later."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from ....job.instants import Instant
from ....job.stages import Stage, Stages, callback_job
from ....job.states import FINAL, State
from ....store.staging import stage_batch
from ....store.values import BATCH
from ..keys import Bound, Key
from ..queue_data import QueueData
from ..step import Step
from .ending import conclude, drop


def apply_stages(step: Step, queue: QueueData) -> tuple[int, int, bool]:
    """Returns how many jobs became stale, how many were deleted, and whether there may be more."""
    stages = queue.settings.stages
    if stages is None:
        return 0, 0, False
    stale, stages = _mark(step, queue, stages)
    deleted = _delete(step, queue, stages)
    conclude(step)
    return stale, deleted, stale >= stage_batch(stages, "stale") or deleted == stage_batch(stages, "deleted")


def _mark(step: Step, queue: QueueData, stages: Stages) -> tuple[int, Stages]:
    limit = stages.stale_before(step.now)
    if limit is None:
        return 0, stages
    batch = stage_batch(stages, "stale")
    next_ones = sorted(key for state in FINAL for key in queue.index(state).keys.after((stages.stale_until,), batch))
    due = [key for key in next_ones if key[0] <= limit][:batch]
    if not due:
        return 0, stages
    # Those that ended in the same millisecond as the last one become stale with it.
    until = due[-1][0]
    ids = [id for state in FINAL for _, _, id in _between(queue, state, stages.stale_until, until)]
    for id in ids:
        queue.entry("stale").append((id, None))
        _call_back(step, queue, stages, id, "stale")
    marked = replace(stages, stale_until=until)
    queue.set_now(replace(queue.settings, stages=marked))
    return len(ids), marked


def _between(queue: QueueData, state: State, after: Instant, until: Instant) -> Iterator[Key]:
    keys = queue.index(state).keys
    bound: Bound = (after,)
    while found := keys.after(bound, BATCH):
        for key in found:
            if key[0] > until:
                return
            yield key
        bound = found[-1][:2]


def _delete(step: Step, queue: QueueData, stages: Stages) -> int:
    limit = stages.deleted_before(step.now)
    if limit is None:
        return 0
    ids: list[str] = []
    batch = stage_batch(stages, "deleted")
    for state in FINAL:
        ids += [id for _, _, id in queue.index(state).keys.first(batch - len(ids), before=(limit + 1,))]
    for id in ids:
        queue.entry("deleted").append((id, None))
        _call_back(step, queue, stages, id, "deleted")
    for id in ids:
        drop(step, queue.jobs[id])
    return len(ids)


def _call_back(step: Step, queue: QueueData, stages: Stages, id: str, stage: Stage) -> None:
    if stage in stages.callbacks:
        step.follow_ups.append(callback_job(queue.jobs[id], stage))


def next_stage_at(queue: QueueData) -> Iterator[Instant]:
    """When the next job becomes stale, and when the next one is deleted."""
    stages = queue.settings.stages
    if stages is None:
        return
    for state in FINAL:
        keys = queue.index(state).keys
        if stages.stale_after is not None and (found := keys.after((stages.stale_until,), 1)):
            yield found[0][0] + stages.stale_after
        if stages.delete_after is not None and (found := keys.first(1)):
            yield found[0][0] + stages.delete_after
