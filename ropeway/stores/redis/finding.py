"""find: reads pages in bounded windows, so that no script looks at many jobs."""

from __future__ import annotations

import heapq
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

from ...job.instants import Instant
from ...job.record import JobRecord
from ...job.states import State
from ...store.commands import Find
from ...store.cursors import Cursor, cursor_reader, states_left
from ...store.values import BATCH, Page
from .encoding import as_text, records

Run: TypeAlias = Callable[..., Awaitable[Any]]
"""Runs a script on one queue."""


class MemberCursor(Cursor, frozen=True, array_like=True):
    """A place in a sorted set: by score, and among equal scores by member."""

    score: int
    member: bytes


_read_cursor: Final = cursor_reader(MemberCursor)


async def find(run: Run, query: Find, stale_until: Instant | None = None) -> Page:
    """`stale_until`: only finished jobs that ended up to then."""
    place = last = _read_cursor(query)
    jobs: list[JobRecord] = []
    for state in states_left(query, place):
        while True:
            # One more than fits says whether there is another page.
            most = query.limit - len(jobs) + 1 if query.name is None and query.tag is None else BATCH
            score, member = (place.score, as_text(place.member)) if place else (0, False)
            sought = False if query.name is None else query.name, False if query.tag is None else query.tag
            window = score, member, query.newest_first, most, False if stale_until is None else stale_until
            packed, keys, end = await run("find", query.queue, query.queue, state, *sought, *window)
            for job, key in zip(records(packed), keys, strict=True):
                if len(jobs) == query.limit:
                    return Page(jobs, str(last))
                jobs.append(job)
                last = MemberCursor(state, int(key[0]), key[1])
            if end is None:
                break
            place = MemberCursor(state, int(end[0]), end[1])
        place = None
    return Page(jobs)


async def oldest(run: Run, queue: str, state: State, until: Instant, limit: int) -> list[str]:
    """Ids of the oldest jobs of a state without an index by age, except jobs of schedules: reads all, page by page."""
    found: list[tuple[Instant, int, str]] = []
    after = None
    while True:
        page = await find(run, Find(queue, (state,), limit=BATCH, after=after))
        old = [
            (job.created_at, abs(job.order), job.id)
            for job in page.jobs
            if job.created_at <= until and (job.extras is None or job.extras.schedule is None)
        ]
        found = heapq.nsmallest(limit, [*found, *old])
        after = page.next
        if after is None:
            return [id for _, _, id in found]
