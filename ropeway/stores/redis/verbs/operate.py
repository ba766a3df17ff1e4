"""Commands by which operators act on jobs."""

from __future__ import annotations

from typing import Any

from msgspec.structs import astuple

from ....job.instants import Instant
from ....job.marks import Marking
from ....store.commands import Cancel, Change, ClearLog, Promote, Remove, Retry
from ....store.values import Answer
from ..encoding import DEFAULTS, answers_of, as_json, bounded, given
from ..executor import Executor
from ..ids import all_shortened, shortened
from ..updating import marking_of


async def cancel(on: Executor, command: Cancel, now: Instant | None) -> list[Answer]:
    reason = command.reason
    words = (False, False) if reason is None else (reason, as_json(reason).decode())
    return await _each(on, "cancel", command.queue, now, all_shortened(command.ids), *words, DEFAULTS)


async def retry(on: Executor, command: Retry, now: Instant | None) -> list[Answer]:
    marks, forgets = marking_of(command.marking or Marking())
    return await _each(on, "retry", command.queue, now, all_shortened(command.ids), command.reset, marks, forgets)


async def promote(on: Executor, command: Promote, now: Instant | None) -> list[Answer]:
    return await _each(on, "promote", command.queue, now, all_shortened(command.ids))


async def change(on: Executor, command: Change, now: Instant | None) -> list[Answer]:
    packed = [(shortened(change.id), *astuple(change)[1:]) for change in command.changes]
    return await _each(on, "change", command.queue, now, packed)


async def remove(on: Executor, command: Remove, now: Instant | None) -> list[Answer]:
    return await _each(on, "remove", command.queue, now, all_shortened(command.ids), command.force)


async def clear_log(on: Executor, command: ClearLog, _: Instant | None) -> Answer:
    packed = shortened(command.id), bounded(max(0, command.keep))
    [answer] = answers_of(await on.run("clear_log", command.queue, *packed))
    return answer


async def _each(on: Executor, script: str, queue: str, now: Instant | None, *arguments: Any) -> list[Answer]:
    return answers_of(await on.run(script, queue, given(now), *arguments))
