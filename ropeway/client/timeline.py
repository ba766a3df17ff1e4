"""The timeline of a job."""

from __future__ import annotations

from itertools import groupby, zip_longest
from typing import Any, Final, NamedTuple

from ..job.events import expand
from ..job.instants import Instant, instant_of
from ..store.values import BATCH, History
from .queue import Queue
from .snapshot import Snapshot

FIRST_PAGE: Final = 20
"""Entries of the first read."""


class TimelineEntry(NamedTuple):
    """What happened to a job at one time."""

    at: Instant
    name: str
    """The name of an event, or `attempt failed` if its event is no longer kept."""
    data: dict[str, Any]


class TimelineLine(NamedTuple):
    """Entries that are shown as one."""

    at: Instant
    names: list[str]
    data: dict[str, Any]
    """Without what the job itself says already."""


def timeline_lines(entries: list[TimelineEntry], job: Snapshot) -> list[TimelineLine]:
    """One line for what happened at once, and of reports of progress in a row the last."""
    kept = [
        entry
        for entry, following in zip_longest(entries, entries[1:])
        if entry.name != "progress" or following is None or following.name != "progress"
    ]
    known = {"name": job.name, "result": job.result}
    return [
        TimelineLine(
            at,
            [entry.name for entry in together],
            {key: value for key, value in data.items() if key not in known or known[key] != value},
        )
        for (at, data), together in groupby(kept, lambda entry: (entry.at, entry.data))
    ]


async def timeline_of(queue: Queue, job: Snapshot, history: History, *, most: int | None = None) -> list[TimelineEntry]:
    """Built from the kept events, and for the time before them from the job's own record and history.

    If the queue has more than `most` events, from the latter alone: one entry of a stream may be of a thousand jobs.
    """
    events = await _events(queue, job.id, most)
    # A store may write one event entry for several adds, at the time of the last: it may be younger than the job.
    is_added = any(entry.name == "added" for entry in events)
    remembered = [
        *([] if is_added else [TimelineEntry(instant_of(job.created_at), "added", {"name": job.name})]),
        *(
            TimelineEntry(failed.at, "attempt failed", {"attempt": failed.attempt, "reason": failed.reason})
            for failed in history.failures
        ),
    ]
    if not events and job.finished_at is not None:
        remembered.append(TimelineEntry(instant_of(job.finished_at), job.state, {}))
    first = events[0].at if events else None
    return [*(entry for entry in remembered if first is None or entry.at < first), *events]


async def _events(queue: Queue, id: str, most: int | None) -> list[TimelineEntry]:
    found: list[TimelineEntry] = []
    cursor: str | None = None
    number, size = 0, FIRST_PAGE
    while True:
        page = await queue.store.events(queue.name, cursor, limit=size)
        for stored in page.entries:
            number += max(1, len(stored.entry.jobs))
            events = expand(queue.name, stored.id, stored.entry)
            found += [TimelineEntry(event.at, event.name, event.data) for event in events if event.job_id == id]
            if most is not None and number > most:
                return []
        if not page.entries:
            return found
        # Small at first: entries may be large, and a bound is then reached soon.
        cursor, size = page.cursor, min(size * 2, BATCH)
