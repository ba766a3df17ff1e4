"""Commands that read."""

from __future__ import annotations

from functools import partial

from ....job.instants import Instant
from ....job.record import JobRecord
from ....job.states import STATES, State
from ....store import commands
from ....store.commands import Find
from ....store.values import Children, Counts, Entries, History, LogPage, Metric, Page, Revoked, RevokedLock, Settings
from .. import reading
from ..executor import Executor
from ..link import Row
from ..parameters import NULL, amount, boolean, number, numbers, text, texts


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
    )


async def count(on: Executor, command: commands.Count, _: Instant | None) -> Counts:
    [counts] = await on.call("count", text(command.queue))
    return {state: number or 0 for state, number in zip(STATES, counts, strict=True)}


async def count_waiting(on: Executor, command: commands.CountWaiting, _: Instant | None) -> list[int]:
    [(counts,)] = await on.call("count_waiting", text(command.queue), numbers(command.priorities))
    return list(counts)


async def metrics(on: Executor, command: commands.ReadMetrics, _: Instant | None) -> list[Metric]:
    return [Metric(*row) for row in await on.call("metrics", text(command.queue), number(command.since))]


async def history(on: Executor, command: commands.ReadHistory, _: Instant | None) -> History | None:
    return reading.history_of(await on.call("history", text(command.queue), text(command.id)))


async def log(on: Executor, command: commands.ReadLog, _: Instant | None) -> LogPage | None:
    place = NULL if command.after is None else amount(command.after)
    # One more than fits says whether there is another page.
    most = amount(command.limit + 1)
    rows = await on.call("log", text(command.queue), text(command.id), place, most, boolean(command.newest_first))
    return reading.log_of(rows, command.limit)


async def children(on: Executor, command: commands.ReadChildren, _: Instant | None) -> Children | None:
    after = command.after
    last = int(after) if after and after.isascii() and after.isdecimal() and len(after) < 19 else 0
    rows = await on.call(
        "children",
        text(command.queue),
        text(command.id),
        texts(command.states),
        number(last),
        amount(command.limit + 1),
    )
    return reading.children_of(rows, command.limit)


async def settings(on: Executor, command: commands.ReadSettings, _: Instant | None) -> Settings:
    for is_paused, names, limit in await on.call("settings", text(command.queue)):
        return Settings(is_paused, tuple(names), limit)
    return Settings()


async def queues(on: Executor, _: commands.ListQueues, __: Instant | None) -> list[str]:
    [(names,)] = await on.call("queues")
    return list(names)


async def clock(on: Executor, _: commands.ReadClock, __: Instant | None) -> Instant:
    [(now,)] = await on.call("clock")
    return int(now)


async def events(on: Executor, command: commands.ReadEvents, _: Instant | None) -> Entries:
    after, limit = command.after, command.limit
    position = reading.read_position(after) if after not in (None, "now") and after is not None else None
    most = number(0 if after == "now" else limit + 1)
    [row] = await on.call("events", text(command.queue), number(None if position is None else position.step), most)
    found = reading.entries_of(row, after, inclusive=command.inclusive, limit=limit)
    if found.gap and found.cursor == after:
        # What was asked for is not there: what is there begins at the oldest.
        [row] = await on.call("events", text(command.queue), number(None), most)
        found = reading.entries_of(row, None, inclusive=False, limit=limit)
        return Entries(found.entries, found.cursor, gap=True)
    return found


async def revoked(on: Executor, command: commands.ReadRevoked, _: Instant | None) -> Revoked:
    after = command.after
    is_known = after is not None and after.isascii() and after.isdecimal() and len(after) < 19
    last = int(after) if is_known and after is not None else None if after is None else 0
    [(ids, tokens, whys, newest)] = await on.call("revoked", text(command.queue), number(last))
    if after is None:
        return Revoked([], str(newest))
    locks = zip(ids or (), tokens or (), whys or (), strict=True)
    return Revoked([RevokedLock(*lock) for lock in locks], str(newest))
