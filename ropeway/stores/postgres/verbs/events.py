"""events and revoked: what happened in a queue behind a position."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import msgspec

from ....job.events import Entry, events_in, trim_entry
from ....job.instants import Instant
from ....store.commands import ReadEvents, ReadRevoked
from ....store.values import Entries, Revoked, RevokedLock, StoredEntry
from ..executor import Executor
from ..link import Row
from ..parameters import boolean, number, text

_entries: Final[Callable[[str], list[Entry]]] = msgspec.json.Decoder(list[Entry]).decode


class Position(msgspec.Struct, frozen=True):
    """A position in the event stream: a step, and the last entry of it that was read (None: all of them)."""

    step: int
    entry: int | None = None

    def is_behind(self, step: int, entry: int) -> bool:
        """Whether it comes after this entry."""
        return step < self.step or (step == self.step and (self.entry is None or entry < self.entry))


Step: TypeAlias = list[Entry | None] | None
"""The entries of a step, with None for those that were trimmed; None if it is damaged."""


async def events(on: Executor, command: ReadEvents, _: Instant | None) -> Entries:
    after, limit = command.after, command.limit
    position = _read_position(after) if after not in (None, "now") and after is not None else None
    most = number(0 if after == "now" else limit + 1)
    first = number(None if position is None else position.step)
    [row] = await on.call("events", text(command.queue), first, most, boolean(command.newest_first))
    if command.newest_first:
        return _entries_back(row, after, position, limit)
    found = _entries_of(row, after, inclusive=command.inclusive, limit=limit)
    if found.gap and found.cursor == after:
        # What was asked for is not there: what is there begins at the oldest.
        [row] = await on.call("events", text(command.queue), number(None), most, boolean(False))
        found = _entries_of(row, None, inclusive=False, limit=limit)
        return Entries(found.entries, found.cursor, gap=True)
    return found


def _read_position(after: str) -> Position | None:
    step, dash, entry = after.partition("-")
    parts = (step, entry) if dash else (step,)
    if not all(part.isascii() and part.isdecimal() and len(part) < 19 for part in parts):
        return None
    return Position(int(step), int(entry) if dash else None)


def _entries_of(row: Row, after: str | None, *, inclusive: bool, limit: int) -> Entries:
    """The entries behind `after` in a row of `sql/events.sql`."""
    numbers, bodies, events_from, newest = row
    if after == "now":
        return Entries([], str(newest))
    gone = -1 - events_from if events_from is not None and events_from < 0 else 0
    steps = [(number, _read(body, number, gone)) for number, body in zip(numbers or (), bodies or (), strict=True)]
    position = _read_position(after) if after is not None else None
    gap = any(entries is None and (position is None or number != position.step) for number, entries in steps)
    if after is not None and not _is_known(position, steps, events_from, inclusive=inclusive):
        return Entries([], after, gap=True)
    unread = [
        StoredEntry(f"{number}-{n}", entry)
        for number, entries in steps
        for n, entry in enumerate(entries or ())
        if entry is not None and (position is None or not _is_read(position, number, n, inclusive=inclusive))
    ]
    if len(unread) > limit:
        return Entries(unread[:limit], unread[limit - 1].id, gap)
    # Behind a whole step: valid even when that is trimmed, and a damaged one is not reported again.
    cursor = str(steps[-1][0]) if steps else after if after is not None else str(max(0, events_from or 0))
    return Entries(unread, cursor, gap)


def _entries_back(row: Row, before: str | None, position: Position | None, limit: int) -> Entries:
    """The newest entries first, of those before a position."""
    numbers, bodies, events_from, newest = row
    gone = -1 - events_from if events_from is not None and events_from < 0 else 0
    steps = [(number, _read(body, number, gone)) for number, body in zip(numbers or (), bodies or (), strict=True)]
    if before is not None and not _is_known(position, steps, events_from, inclusive=True):
        return Entries([], before, gap=True)
    older = [
        StoredEntry(f"{number}-{n}", entry)
        for number, entries in steps
        for n, entry in reversed([*enumerate(entries or ())])
        if entry is not None and (position is None or position.is_behind(number, n))
    ][:limit]
    is_damaged = any(entries is None for _, entries in steps)
    return Entries(older, older[-1].id if older else before or str(newest), is_damaged)


def _read(body: str, last: int, gone: int) -> Step:
    """Decodes a step. `last` is the number of its last event, `gone` that of the last event that was trimmed."""
    try:
        entries: list[Entry | None] = [*_entries(f"[{body}]")]
    except msgspec.DecodeError:
        # Damaged: the other steps can still be read.
        return None
    for n in reversed(range(len(entries))) if gone else ():
        entry = entries[n]
        assert entry is not None
        entries[n] = trim_entry(entry, last, gone, is_newest=False)
        last -= events_in(entry.what, entry.to, len(entry.jobs))
    return entries


def _is_known(
    position: Position | None, steps: Sequence[tuple[int, Step]], events_from: int | None, *, inclusive: bool
) -> bool:
    """Whether the position exists: in a step that is there, or at the untrimmed beginning of the stream."""
    if position is None:
        return False
    if steps and steps[0][0] == position.step:
        entries = steps[0][1] or ()
        return position.entry is None or (position.entry < len(entries) and entries[position.entry] is not None)
    return position.step == events_from and position.entry is None and not inclusive


def _is_read(position: Position, number: int, entry: int, *, inclusive: bool) -> bool:
    if number != position.step:
        return False
    if position.entry is None:
        return not inclusive
    return entry < position.entry or (entry == position.entry and not inclusive)


async def revoked(on: Executor, command: ReadRevoked, _: Instant | None) -> Revoked:
    after = command.after
    is_known = after is not None and after.isascii() and after.isdecimal() and len(after) < 19
    last = int(after) if is_known and after is not None else None if after is None else 0
    [(ids, tokens, whys, newest)] = await on.call("revoked", text(command.queue), number(last))
    if after is None:
        return Revoked([], str(newest))
    locks = zip(ids or (), tokens or (), whys or (), strict=True)
    return Revoked([RevokedLock(*lock) for lock in locks], str(newest))
