"""write_schedules and schedules: versioned records of a queue with the instant at which they are due."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from ...job.instants import Instant
from ...job.states import FINAL
from ...store.commands import ReadSchedules, WriteSchedules
from ...store.values import DUE_SCHEDULES, ScheduleWrite, ScheduleWritten, StoredSchedule
from .adding import add
from .decoding import decoder
from .ending import Ends
from .finishing import Removal
from .locating import locate
from .statements import statements
from .transaction import QueueRow, Transaction, as_json
from .verbs import reads, writes

_SQL: Final = statements("schedules")
_schedules: Final[Callable[[bytes], list[StoredSchedule]]] = decoder(list[StoredSchedule])


@writes(WriteSchedules)
def write_schedules(tx: Transaction, queue: str, writes: Sequence[ScheduleWrite]) -> list[ScheduleWritten]:
    row = tx.queue(queue, create=True)
    now = tx.now()
    busy = row.busy
    there = {one.id: one for one in _some(tx, row, [write.id for write in writes])}
    ends = Ends(tx, row, now)
    answers = [_write(tx, ends, write, there) for write in writes]
    ends.conclude()
    tx.notice_drained(row, busy)
    if any(answer.verdict == "done" for answer in answers):
        tx.wake("schedules", row)
    return answers


def _write(tx: Transaction, ends: Ends, write: ScheduleWrite, there: dict[str, StoredSchedule]) -> ScheduleWritten:
    """Makes one write, if the version is the expected one; `there` has the schedules, and is kept up to date."""
    before = there.get(write.id)
    version = before.version if before else 0
    if write.expect not in (None, version):
        return ScheduleWritten("lost", before)
    schedule = None if write.value is None else StoredSchedule(write.id, write.value, write.next_at, version + 1)
    values = {"queue": ends.row.id, "id": write.id}
    if schedule is None:
        tx.run(_SQL["delete"], values)
        there.pop(write.id, None)
    else:
        values |= {"value": schedule.value, "next_at": schedule.next_at, "version": schedule.version}
        tx.run(_SQL["write"], values)
        there[write.id] = schedule
    ends.start_followers()
    added = [answer for [answer] in add(tx, [[job] for job in write.adds])] if write.adds else []
    if write.removes:
        _remove(tx, ends, write.removes)
    return ScheduleWritten("done", schedule, added)


def _remove(tx: Transaction, ends: Ends, ids: Sequence[str]) -> None:
    """Removes jobs that are neither active nor final."""
    # One that was just added may be among them.
    tx.flush_arrival()
    found = {job.id: job for job in locate(tx, ends.row, ids)}
    ends.remove(
        [
            Removal(job.seq, job.id, job.state, job.has)
            for job in found.values()
            if job.state is not None and job.state != "active" and job.state not in FINAL
        ]
    )


@reads(ReadSchedules, sees_inbox=False)
def schedules(
    tx: Transaction, queue: str, ids: Sequence[str] | None, after: str | None, limit: int
) -> list[StoredSchedule]:
    row = tx.queue(queue)
    if ids is not None:
        return _some(tx, row, ids)
    return _schedules(tx.get(_SQL["page"], {"queue": row.id, "after": after or "", "limit": max(0, limit)}))


def due_schedules(tx: Transaction, row: QueueRow, now: Instant) -> list[StoredSchedule]:
    return _schedules(tx.get(_SQL["due"], {"queue": row.id, "now": now, "limit": DUE_SCHEDULES}))


def _some(tx: Transaction, row: QueueRow, ids: Sequence[str]) -> list[StoredSchedule]:
    return _schedules(tx.get(_SQL["some"], {"queue": row.id, "ids": as_json(ids)}))
