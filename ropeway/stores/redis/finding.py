"""find, a window at a time: no script looks at more jobs than one page needs."""

from __future__ import annotations

import heapq
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from ...job.instants import Instant
from ...job.record import JobRecord
from ...job.states import State
from ...store.values import BATCH, Page, Query
from .encoding import as_json, as_text, records
from .looking import Cursor, read_cursor

Run: TypeAlias = Callable[..., Awaitable[Any]]
"""Runs a script on one queue."""


async def find(run: Run, query: Query) -> Page:
    states = query.states[::-1] if query.newest_first else query.states
    start = last = read_cursor(query, len(states))
    jobs: list[JobRecord] = []
    for number, state in enumerate(states):
        if start is not None and number < start.state:
            continue
        place = start if start is not None and number == start.state else None
        while True:
            # One more than fits says whether there is another page.
            most = query.limit - len(jobs) + 1 if query.name is None else BATCH
            score, member = (place.score, as_text(place.member)) if place else (0, False)
            window = (query.queue, state, query.name or False, score, member, query.newest_first, most)
            packed, keys, end = await run("find", query.queue, *window)
            for job, key in zip(records(packed), keys, strict=True):
                if len(jobs) == query.limit:
                    return Page(jobs, as_json(last).decode())
                jobs.append(job)
                last = Cursor(number, int(key[0]), key[1])
            if end is None:
                break
            place = Cursor(number, int(end[0]), end[1])
    return Page(jobs)


async def oldest(run: Run, queue: str, state: State, until: Instant, limit: int) -> list[str]:
    """Ids of the oldest jobs of a state that no index keeps by age: it looks at all of them, a page at a time."""
    found: list[tuple[Instant, int, str]] = []
    after = None
    while True:
        page = await find(run, Query(queue, (state,), limit=BATCH, after=after))
        old = [(job.created_at, abs(job.order), job.id) for job in page.jobs if job.created_at <= until]
        found = heapq.nsmallest(limit, [*found, *old])
        after = page.next
        if after is None:
            return [id for _, _, id in found]
