"""Decoding of what reading functions return: pages, events, histories, logs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from ...job.events import Entry, events_in, trim_entry
from ...job.flows import CHILD_STATES, ChildState, Parent
from ...job.record import JobRecord
from ...job.states import State
from ...store.commands import Find
from ...store.cursors import BEYOND_ALL, PairCursor, cursor_reader, states_left
from ...store.values import Children, ChildStatus, Entries, FailedAttempt, History, LogLine, LogPage, Page, StoredEntry
from .link import Row

_entries: Final[Callable[[str], list[Entry]]] = msgspec.json.Decoder(list[Entry]).decode
_failures: Final[Callable[[str], list[FailedAttempt]]] = msgspec.json.Decoder(list[FailedAttempt]).decode
_lines: Final[Callable[[str], list[LogLine]]] = msgspec.json.Decoder(list[LogLine]).decode

_parents: Final[Callable[[str], tuple[Parent, ...]]] = msgspec.json.Decoder(tuple[Parent, ...]).decode

FindIn = Callable[[State, int, int, int, int], Awaitable[list[Row]]]
"""Takes a state, how many jobs to return and to look at, both at most, and a key; returns rows of `sql/find.sql`."""

STRIDE: Final = 5_000
"""Jobs that one statement looks at for a name or a tag, so that a search for a rare one is no long statement."""

_read_cursor: Final = cursor_reader(PairCursor)


async def find(find_in: FindIn, query: Find) -> Page:
    start = _read_cursor(query)
    beginning = BEYOND_ALL if query.newest_first else -BEYOND_ALL
    key = (start.first, start.second) if start else (beginning, beginning)
    jobs: list[JobRecord] = []
    last = start
    is_filtered = query.name is not None or query.tag is not None
    for state in states_left(query, start):
        left: tuple[int, int] | None = key
        while left is not None:
            # One more than fits says whether there is another page.
            most = query.limit - len(jobs) + 1
            rows = await find_in(state, most, max(most, STRIDE) if is_filtered else most, *left)
            left = None
            for first, second, *fields in rows:
                if fields[0] is None:
                    left = first, second
                elif len(jobs) == query.limit:
                    return Page(jobs, str(last))
                else:
                    jobs.append(record_of(fields))
                    last = PairCursor(state, first, second)
        key = (beginning, beginning)
    return Page(jobs)


def record_of(fields: Sequence[Any]) -> JobRecord:
    """A row of `sql/get.sql`. Its tags and parents are null if the job has none."""
    *plain, tags, parents, children = fields
    whole: list[Any] = [*plain, tuple(tags or ()), _parents(parents) if parents else (), children]
    return JobRecord(*whole)


class Position(msgspec.Struct, frozen=True):
    """A position in the event stream: a step, and the last entry of it that was read (None: all of them)."""

    step: int
    entry: int | None = None


Step: TypeAlias = list[Entry | None] | None
"""The entries of a step, with None for those that were trimmed; None if it is damaged."""


def read_position(after: str) -> Position | None:
    step, dash, entry = after.partition("-")
    parts = (step, entry) if dash else (step,)
    if not all(part.isascii() and part.isdecimal() and len(part) < 19 for part in parts):
        return None
    return Position(int(step), int(entry) if dash else None)


def entries_of(row: Row, after: str | None, *, inclusive: bool, limit: int) -> Entries:
    """The entries behind `after` in a row of `sql/events.sql`."""
    numbers, bodies, events_from, newest = row
    if after == "now":
        return Entries([], str(newest))
    gone = -1 - events_from if events_from is not None and events_from < 0 else 0
    steps = [(number, _read(body, number, gone)) for number, body in zip(numbers or (), bodies or (), strict=True)]
    position = read_position(after) if after is not None else None
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


def history_of(rows: Sequence[Row]) -> History | None:
    if not rows:
        return None
    [(failures, log, logged)] = rows
    lines = _lines(log) if log else []
    return History(_failures(failures) if failures else [], lines, logged - len(lines))


def log_of(rows: Sequence[Row], limit: int) -> LogPage | None:
    """A page of log lines; `sql/log.sql` was asked for one line more than fits."""
    if not rows:
        return None
    [(numbers, ats, texts, newest)] = rows
    lines = [LogLine(*line) for line in zip(ats or (), texts or (), strict=True)]
    is_last = limit <= 0 or len(lines) <= limit
    return LogPage(lines[: max(0, limit)], newest, None if is_last else numbers[limit - 1])


def children_of(rows: Sequence[Row], limit: int) -> Children | None:
    """A page of children; `sql/children.sql` was asked for one more than fits."""
    if not rows:
        return None
    [(counts, numbers, *columns)] = rows
    totals: dict[ChildState, int] = dict.fromkeys(CHILD_STATES, 0)
    *each, awaited = counts or [0]
    totals.update(zip(CHILD_STATES, each, strict=False))
    found = [ChildStatus(*fields) for fields in zip(*columns, strict=True)] if numbers else []
    return Children(found[:limit], totals, str(numbers[limit - 1]) if len(found) > limit else None, bool(awaited))
