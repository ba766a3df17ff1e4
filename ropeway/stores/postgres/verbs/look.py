"""Commands that only read: jobs, counts, metrics, settings, queues, the clock."""

from __future__ import annotations

from functools import partial

from ....job.instants import Instant
from ....job.record import JobRecord
from ....job.states import STATES, State
from ....store import commands
from ....store.commands import Find
from ....store.values import Counts, Metric, Page, Settings
from .. import reading
from ..executor import Executor
from ..link import Row
from ..parameters import boolean, number, numbers, text, texts


async def get(on: Executor, command: commands.Get, _: Instant | None) -> list[JobRecord | None]:
    rows = await on.call("get", text(command.queue), texts(command.ids))
    known = {row[1]: reading.record_of(row) for row in rows}
    return [known.get(id) for id in command.ids]


async def find(on: Executor, command: Find, _: Instant | None) -> Page:
    return await reading.find(partial(_find_in, on, command), command)


async def _find_in(
    on: Executor, command: Find, state: State, most: int, looks: int, first: int, second: int
) -> list[Row]:
    return await on.call(
        "find",
        text(command.queue),
        text(state),
        text(command.name),
        text(command.tag),
        number(most),
        number(looks),
        number(first),
        number(second),
        boolean(command.newest_first),
        boolean(command.stale),
    )


async def count(on: Executor, command: commands.Count, _: Instant | None) -> Counts:
    [counts] = await on.call("count", text(command.queue))
    return {state: number or 0 for state, number in zip(STATES, counts, strict=True)}


async def count_waiting(on: Executor, command: commands.CountWaiting, _: Instant | None) -> list[int]:
    [(counts,)] = await on.call("count_waiting", text(command.queue), numbers(command.priorities))
    return list(counts)


async def metrics(on: Executor, command: commands.ReadMetrics, _: Instant | None) -> list[Metric]:
    return [Metric(*row) for row in await on.call("metrics", text(command.queue), number(command.since))]


async def settings(on: Executor, command: commands.ReadSettings, _: Instant | None) -> Settings:
    for is_paused, names, limit, *stages in await on.call("settings", text(command.queue)):
        return Settings(is_paused, tuple(names), limit, reading.stages_of(stages))
    return Settings()


async def queues(on: Executor, _: commands.ListQueues, __: Instant | None) -> list[str]:
    [(names,)] = await on.call("queues")
    return list(names)


async def clock(on: Executor, _: commands.ReadClock, __: Instant | None) -> Instant:
    [(now,)] = await on.call("clock")
    return int(now)
