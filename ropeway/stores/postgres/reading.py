"""Reading of jobs: their records, and pages of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import msgspec

from ...job.extras import Extras
from ...job.flows import Parent
from ...job.record import JobRecord
from ...job.stages import Stages
from ...job.states import State
from ...store.commands import Find
from ...store.cursors import BEYOND_ALL, PairCursor, cursor_reader, states_left
from ...store.values import Page
from .link import Row
from .marking import marks_in

_extras: Final[Callable[[str], Extras]] = msgspec.json.Decoder(Extras).decode
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


def stages_of(fields: Sequence[Any]) -> Stages | None:
    """The last columns of `sql/settings.sql`."""
    stale_after, delete_after, stale_until, callbacks = fields
    return None if callbacks is None else Stages(stale_after, delete_after, stale_until, tuple(callbacks))


def record_of(fields: Sequence[Any]) -> JobRecord:
    """A row of `sql/get.sql`. Its tags, parents, extras and marks are null if the job has none."""
    *plain, tags, parents, children, extras, marks = fields
    whole: list[Any] = [*plain, tuple(tags or ()), _parents(parents) if parents else (), children]
    if extras is not None or marks is not None:
        whole.append(None if extras is None else _extras(extras))
    if marks is not None:
        whole.append(marks_in(marks))
    return JobRecord(*whole)
