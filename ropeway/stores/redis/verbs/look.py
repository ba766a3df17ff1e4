"""Commands that only read: jobs, counts, metrics, settings, queues, the clock."""

from __future__ import annotations

import asyncio
from typing import Any

from msgspec.structs import replace

from ....job.instants import Instant
from ....job.record import JobRecord
from ....store import commands
from ....store.commands import Find
from ....store.values import Counts, Metric, Page, Settings
from .. import finding
from ..constants import METRICS
from ..decoding import Row, row_of, stages_of
from ..encoding import bounded, records_or_none
from ..executor import Executor
from ..failures import reading
from ..ids import all_shortened


async def get(on: Executor, command: commands.Get, _: Instant | None) -> list[JobRecord | None]:
    packed = await on.run("get", command.queue, command.queue, all_shortened(command.ids))
    with reading(on.target.url):
        return records_or_none(packed)


async def find(on: Executor, command: Find, _: Instant | None) -> Page:
    stale_until = None
    if command.stale:
        stored = await on.execute("HGET", f"{on.keys.queue(command.queue)}:stages", "stale_until")
        stale_until = -1 if stored is None else int(stored)
    with reading(on.target.url):
        return await finding.find(on.run, command, stale_until)


async def count(on: Executor, command: commands.Count, _: Instant | None) -> Counts:
    return (await _row(on, command.queue)).counts


async def settings(on: Executor, command: commands.ReadSettings, _: Instant | None) -> Settings:
    row = await _row(on, command.queue)
    if not row.has_stages:
        return row.settings
    stored = await on.execute("HGETALL", f"{on.keys.queue(command.queue)}:stages")
    return replace(row.settings, stages=stages_of(stored))


async def _row(on: Executor, queue: str) -> Row:
    stored = await on.execute("GET", on.keys.queue(queue))
    with reading(on.target.url):
        return row_of(stored)


async def metrics(on: Executor, command: commands.ReadMetrics, _: Instant | None) -> list[Metric]:
    return _metrics_of(await on.run("metrics", command.queue, command.since, METRICS))


def _metrics_of(answer: list[Any]) -> list[Metric]:
    return [
        Metric(int(minute), **{name: int(number or 0) for name, number in zip(METRICS, numbers, strict=True)})
        for minute, numbers in zip(*answer, strict=True)
    ]


async def count_waiting(on: Executor, command: commands.CountWaiting, _: Instant | None) -> list[int]:
    priorities = [bounded(priority) for priority in command.priorities]
    numbers: list[int] = await on.run("count_waiting", command.queue, priorities)
    return numbers


async def queues(on: Executor, _: commands.ListQueues, __: Instant | None) -> list[str]:
    names = sorted(name.decode() for name in await on.execute("SMEMBERS", on.keys.queues))
    rows = await asyncio.gather(*(_row(on, name) for name in names))
    return [name for name, row in zip(names, rows, strict=True) if row.exists]


async def clock(on: Executor, _: commands.ReadClock, __: Instant | None) -> Instant:
    return int(await on.call("clock", (on.keys.queues,)))
