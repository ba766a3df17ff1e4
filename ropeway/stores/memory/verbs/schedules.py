"""Schedules: versioned records of a queue with the instant at which they are due."""

from __future__ import annotations

from operator import attrgetter
from typing import Final

from ....job.instants import Instant
from ....job.states import FINAL
from ....store.commands import ReadSchedules, WriteSchedules
from ....store.values import DUE_SCHEDULES, ScheduleWrite, ScheduleWritten, StoredSchedule
from ..queue_data import QueueData
from ..step import Step
from .add import add_bundles
from .ending import conclude, drop

_due: Final = attrgetter("next_at", "id")


def write_schedules(step: Step, command: WriteSchedules) -> list[ScheduleWritten]:
    queue = step.queue(command.queue)
    answers = [_write(step, queue, write) for write in command.writes]
    conclude(step)
    if any(answer.verdict == "done" for answer in answers):
        step.wake(command.queue, "schedules")
    return answers


def schedules(step: Step, command: ReadSchedules) -> list[StoredSchedule]:
    there = step.shared.queue(command.queue).schedules
    if command.ids is not None:
        return [there[id] for id in command.ids if id in there]
    return [there[id] for id in sorted(there) if command.after is None or id > command.after][: command.limit]


def due_schedules(queue: QueueData, now: Instant) -> list[StoredSchedule]:
    due = [one for one in queue.schedules.values() if one.next_at is not None and one.next_at <= now]
    return sorted(due, key=_due)[:DUE_SCHEDULES]


def _write(step: Step, queue: QueueData, write: ScheduleWrite) -> ScheduleWritten:
    there = queue.schedules.get(write.id)
    version = there.version if there else 0
    if write.expect not in (None, version):
        return ScheduleWritten("lost", there)
    if write.value is None:
        queue.assign(queue.schedules, write.id, None)
        schedule = None
    else:
        schedule = StoredSchedule(write.id, write.value, write.next_at, version + 1)
        queue.assign(queue.schedules, write.id, schedule)
    added = [answer for [answer] in add_bundles(step, [[job] for job in write.adds])]
    for id in write.removes:
        job = queue.jobs.get(id)
        if job is not None and job.state != "active" and job.state not in FINAL:
            drop(step, job)
    return ScheduleWritten("done", schedule, added)
