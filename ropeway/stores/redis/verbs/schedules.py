"""Commands about schedules and dedupe keys."""

from __future__ import annotations

from ....job.instants import Instant
from ....store.commands import ReadDedupe, ReadSchedules, ReleaseDedupe, WriteSchedules
from ....store.values import KeyHolder, ScheduleWritten, StoredSchedule
from ..encoding import given
from ..executor import Executor
from ..ids import text_of
from ..schedules import packed_writes, schedules_of, written_of


async def write_schedules(on: Executor, command: WriteSchedules, now: Instant | None) -> list[ScheduleWritten]:
    queue = command.queue
    await on.register([queue])
    answers, is_new = await on.run_packed(queue, "write_schedules", *packed_writes(command, now))
    await on.notice_new([queue] if is_new else [])
    return written_of(command.writes, answers)


async def schedules(on: Executor, command: ReadSchedules, _: Instant | None) -> list[StoredSchedule]:
    ids, after = (False if given is None else given for given in (command.ids, command.after))
    return schedules_of(await on.run("schedules", command.queue, ids, after, command.limit))


async def dedupe(on: Executor, command: ReadDedupe, now: Instant | None) -> KeyHolder | None:
    held = await on.run("dedupe", command.queue, given(now), command.key)
    if not held:
        return None
    id, until, successor = held
    return KeyHolder(text_of(id), until or None, text_of(successor) if successor else None)


async def release_dedupe(on: Executor, command: ReleaseDedupe, now: Instant | None) -> bool:
    return bool(await on.run("release_dedupe", command.queue, given(now), command.key))
