"""Commands that only read."""

from __future__ import annotations

import asyncio

import msgspec

from ....job.instants import Instant
from ....job.record import JobRecord
from ....store import commands
from ....store.commands import Find
from ....store.values import (
    Children,
    Counts,
    Entries,
    History,
    LogPage,
    Metric,
    Page,
    Revoked,
    RevokedLock,
    Settings,
    Why,
)
from .. import decoding, finding
from ..constants import CHILD_CODES, METRICS
from ..encoding import bounded, records_or_none
from ..executor import Executor
from ..failures import reading
from ..ids import all_shortened, shortened, text_of

_revoked = msgspec.msgpack.Decoder(tuple[int, int, str, str, Why]).decode


async def get(on: Executor, command: commands.Get, _: Instant | None) -> list[JobRecord | None]:
    packed = await on.run("get", command.queue, command.queue, all_shortened(command.ids))
    with reading(on.target.url):
        return records_or_none(packed)


async def find(on: Executor, command: Find, _: Instant | None) -> Page:
    with reading(on.target.url):
        return await finding.find(on.run, command)


async def count(on: Executor, command: commands.Count, _: Instant | None) -> Counts:
    return (await _row(on, command.queue)).counts


async def settings(on: Executor, command: commands.ReadSettings, _: Instant | None) -> Settings:
    return (await _row(on, command.queue)).settings


async def _row(on: Executor, queue: str) -> decoding.Row:
    stored = await on.execute("GET", on.keys.queue(queue))
    with reading(on.target.url):
        return decoding.row_of(stored)


async def metrics(on: Executor, command: commands.ReadMetrics, _: Instant | None) -> list[Metric]:
    return decoding.metrics_of(await on.run("metrics", command.queue, command.since, METRICS))


async def count_waiting(on: Executor, command: commands.CountWaiting, _: Instant | None) -> list[int]:
    priorities = [bounded(priority) for priority in command.priorities]
    numbers: list[int] = await on.run("count_waiting", command.queue, priorities)
    return numbers


async def history(on: Executor, command: commands.ReadHistory, _: Instant | None) -> History | None:
    answer = await on.run("history", command.queue, shortened(command.id))
    with reading(on.target.url):
        return decoding.history_of(answer)


async def children(on: Executor, command: commands.ReadChildren, _: Instant | None) -> Children | None:
    after = command.after
    first = int(after) if after and after.isascii() and after.isdecimal() and len(after) < 16 else 0
    states = "".join(CHILD_CODES[state] for state in command.states)
    packed = shortened(command.id), first, states, bounded(command.limit)
    return decoding.children_of(await on.run("children", command.queue, *packed))


async def log(on: Executor, command: commands.ReadLog, _: Instant | None) -> LogPage | None:
    place = False if command.after is None else bounded(command.after)
    packed = shortened(command.id), place, bounded(command.limit), command.newest_first
    answer = await on.run("log", command.queue, *packed)
    with reading(on.target.url):
        return decoding.log_of(answer, newest_first=command.newest_first)


async def queues(on: Executor, _: commands.ListQueues, __: Instant | None) -> list[str]:
    names = sorted(name.decode() for name in await on.execute("SMEMBERS", on.keys.queues))
    rows = await asyncio.gather(*(_row(on, name) for name in names))
    return [name for name, row in zip(names, rows, strict=True) if row.exists]


async def clock(on: Executor, _: commands.ReadClock, __: Instant | None) -> Instant:
    return int(await on.call("clock", (on.keys.queues,)))


async def events(on: Executor, command: commands.ReadEvents, _: Instant | None) -> Entries:
    after = command.after
    is_given = after not in (None, "now")
    number, epoch = decoding.read_event_id(after) if is_given and after is not None else (False, False)
    most = 0 if after == "now" else command.limit
    return decoding.entries_of(await on.run("events", command.queue, number, epoch, command.inclusive, most, is_given))


async def revoked(on: Executor, command: commands.ReadRevoked, _: Instant | None) -> Revoked:
    after = command.after
    is_known = after is not None and after.isascii() and after.isdecimal() and len(after) < 16
    number = int(after) if is_known and after is not None else False if after is None else 0
    locks, newest = await on.run("revoked", command.queue, number)
    found = [_revoked(lock) for lock in locks]
    if after is None:
        return Revoked([], newest.decode())
    revoked = [RevokedLock(text_of(id), token, why) for _, _, id, token, why in found]
    return Revoked(revoked, str(found[-1][0]) if found else after)
