"""Retention of a whole queue: finished jobs become stale, and are deleted later."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from ...job.instants import Instant
from ...job.stages import Stage, Stages, callback_job
from ...job.states import FINAL, State
from ...store.staging import stage_batch
from .decoding import decoder
from .ending import Ends
from .finishing import Removal
from .locating import records_of
from .statements import statements
from .transaction import QueueRow, Transaction, as_json

_SQL: Final = statements("tick")
_NO_LIMIT: Final = -1


class Ended(msgspec.Struct, frozen=True, array_like=True, gc=False):
    seq: int
    id: str
    state: State
    has: int
    finished_at: Instant


_ended: Final[Callable[[bytes], list[Ended]]] = decoder(list[Ended])


def apply_stages(tx: Transaction, row: QueueRow, now: Instant) -> tuple[int, int, bool]:
    """Returns how many jobs became stale, how many were deleted, and whether there may be more."""
    if row.stages is None:
        return 0, 0, False
    ends = Ends(tx, row, now)
    stale = _mark(tx, row, row.stages, now, ends)
    deleted = _delete(tx, row, row.stages, now, ends)
    ends.conclude()
    has_more = stale >= stage_batch(row.stages, "stale") or deleted == stage_batch(row.stages, "deleted")
    return stale, deleted, has_more


def _mark(tx: Transaction, row: QueueRow, stages: Stages, now: Instant, ends: Ends) -> int:
    limit = stages.stale_before(now)
    if limit is None:
        return 0
    batch = stage_batch(stages, "stale")
    due = sorted(job.finished_at for job in _between(tx, row, stages.stale_until, limit, batch))[:batch]
    if not due:
        return 0
    # Those that ended in the same millisecond as the last one become stale with it.
    jobs = [*_between(tx, row, stages.stale_until, due[-1], _NO_LIMIT)]
    row.stages = replace(stages, stale_until=due[-1])
    row.announce("stale", now, None, [(job.id, None) for job in jobs])
    _call_back(tx, row, stages, "stale", jobs, ends)
    return len(jobs)


def _delete(tx: Transaction, row: QueueRow, stages: Stages, now: Instant, ends: Ends) -> int:
    limit = stages.deleted_before(now)
    if limit is None:
        return 0
    batch = stage_batch(stages, "deleted")
    jobs = [*_between(tx, row, _NO_LIMIT, limit, batch)][:batch]
    if jobs:
        row.announce("deleted", now, None, [(job.id, None) for job in jobs])
        _call_back(tx, row, stages, "deleted", jobs, ends)
        ends.remove([Removal(job.seq, job.id, job.state, job.has) for job in jobs])
    return len(jobs)


def _between(tx: Transaction, row: QueueRow, after: Instant, until: Instant, limit: int) -> Iterator[Ended]:
    """Jobs that ended then, at most so many of each state."""
    for state in FINAL:
        values = {"queue": row.id, "state": state, "after": after, "until": until, "limit": limit}
        yield from _ended(tx.get(_SQL["ended_between"], values))


def _call_back(tx: Transaction, row: QueueRow, stages: Stages, stage: Stage, jobs: Sequence[Ended], ends: Ends) -> None:
    if stage in stages.callbacks:
        ends.add_later(callback_job(job, stage) for job in records_of(tx, row, [job.seq for job in jobs]))


def next_stages_at(tx: Transaction, row: QueueRow) -> Iterator[Instant]:
    """When the next job becomes stale, and when the next one is deleted."""
    stages = row.stages
    if stages is None:
        return
    states = as_json(FINAL)
    for age, after in ((stages.stale_after, stages.stale_until), (stages.delete_after, _NO_LIMIT)):
        ended = None
        if age is not None:
            ended = tx.get(_SQL["next_ended"], {"queue": row.id, "after": after, "states": states})
        if age is not None and ended is not None:
            yield ended + age
