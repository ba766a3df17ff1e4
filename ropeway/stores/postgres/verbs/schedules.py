"""Commands on schedules."""

from __future__ import annotations

from ....job.instants import Instant
from ....store.commands import ReadSchedules, WriteSchedules
from ....store.values import ScheduleWritten, StoredSchedule
from ..executor import Executor
from ..parameters import amount, text, texts
from ..scheduling import parameters_of, written_of


async def write_schedules(on: Executor, command: WriteSchedules, now: Instant | None) -> list[ScheduleWritten]:
    if not command.writes:
        on.check()
        return []
    queue, parameters = command.queue, parameters_of(command.writes)
    answer = await on.call_and_notify("write_schedules", [queue], now, text(queue), *parameters)
    return written_of(command.writes, answer)


async def schedules(on: Executor, command: ReadSchedules, _: Instant | None) -> list[StoredSchedule]:
    ids = None if command.ids is None else list(command.ids)
    rows = await on.call("schedules", text(command.queue), texts(ids), text(command.after), amount(command.limit))
    return [StoredSchedule(*row) for row in rows]
