"""Filters of jobs, from the address of a page; and finding the jobs that match, a bounded number at a time.

Queue, state, name and tag are what a store finds by itself. The rest is compared job by job, and at most `SCAN` jobs
are looked at for one page: it then has a link by which the search goes on.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from ...client.found import FoundJob, JobPage
from ...client.queue import Queue
from ...errors import InvalidDuration, InvalidOption
from ...job.durations import milliseconds
from ...job.instants import Instant, moment_of
from ...job.names import job_id, job_name, tag_name
from ...job.states import STATES, State, state_named
from ...store.values import BATCH
from .fingerprints import fingerprint_of
from .formats import compact
from .redacting import Redact, redacted

if TYPE_CHECKING:
    from .visits import Visit

SCAN: Final = 2_000
"""Jobs that are looked at for one page."""
FIELDS: Final = ("queue", "state", "name", "tag", "error", "text", "id", "priority", "since", "until")
"""Parameters of the address."""


class Filter(NamedTuple):
    queue: str = ""
    states: tuple[State, ...] = ()
    name: str = ""
    tag: str = ""
    error: str = ""
    text: str = ""
    id: str = ""
    priority: int | None = None
    since: datetime | None = None
    """Added then or later."""
    until: datetime | None = None
    group: str = ""
    """The fingerprint of a group of failures; in no address."""

    @property
    def is_plain(self) -> bool:
        """True if the store finds all of it by itself."""
        return not (self.error or self.text or self.since or self.until or self.group) and self.priority is None

    def matches(self, job: FoundJob, redact: Redact | None) -> bool:
        found = job.snapshot
        if self.group and fingerprint_of(job) != self.group:
            return False
        if self.priority is not None and found.priority != self.priority:
            return False
        if (self.since and found.created_at < self.since) or (self.until and found.created_at > self.until):
            return False
        reason = str(redacted(redact, "reason", found.reason) or "").lower()
        if self.error and self.error.lower() not in reason:
            return False
        # What is not shown is not searched either: it could be guessed letter by letter.
        return not self.text or (
            self.text.lower() in compact(redacted(redact, "data", found.data), 1_000_000).lower()
            or self.text.lower() in reason
        )


class Found(NamedTuple):
    jobs: list[FoundJob]
    next: str | None
    """Where the next page goes on; None if there is none."""
    scanned: int


def filter_of(visit: Visit, given: dict[str, str], now: Instant) -> Filter:
    """Raises `InvalidInput` if a field cannot be understood."""
    if given["queue"]:
        visit.reach([given["queue"]])
    priority = given["priority"]
    if priority and not priority.lstrip("-").isdecimal():
        raise InvalidOption("priority", f"cannot be {priority[:40]!r}: use a whole number")
    return Filter(
        given["queue"],
        (state_named(given["state"]),) if given["state"] else (),
        job_name(given["name"]) if given["name"] else "",
        tag_name(given["tag"]) if given["tag"] else "",
        given["error"],
        given["text"],
        job_id(given["id"]) if given["id"] else "",
        int(priority) if priority else None,
        _moment("since", given["since"], now),
        _moment("until", given["until"], now),
    )


def _moment(field: str, text: str, now: Instant) -> datetime | None:
    """An instant, or how long ago it was."""
    if not text:
        return None
    try:
        read = datetime.fromisoformat(text)
        return read if read.tzinfo else read.replace(tzinfo=UTC)
    except ValueError:
        pass
    try:
        return moment_of(max(0, now - milliseconds(text)))
    except InvalidDuration:
        raise InvalidOption(
            field, f"cannot be {text[:40]!r}: use an instant as 2026-01-31T12:00, or how long ago, as 2 hours"
        ) from None


async def search(queues: Sequence[Queue], wanted: Filter, redact: Redact | None, after: str, limit: int) -> Found:
    """A page of the jobs that match, queue by queue and state by state; ended ones the newest first."""
    if wanted.id:
        there = [await queue.get(wanted.id) for queue in queues]
        return Found([job for job in there if job is not None], None, len(there))
    name, _, position = after.partition("~")
    left = [queue for queue in queues if queue.name >= name]
    jobs: list[FoundJob] = []
    scanned = 0
    for queue in left:
        start: str | None = position if queue.name == name and position else None
        while True:
            size = limit - len(jobs) if wanted.is_plain else min(BATCH, SCAN - scanned, 500)
            page = await find(queue, wanted, start, size)
            for index, job in enumerate(page):
                scanned += 1
                if wanted.matches(job, redact):
                    jobs.append(job)
                    if len(jobs) >= limit and index + 1 < len(page):
                        # The rest of this page was read in vain: it is read again, because stores have no finer cursor.
                        return Found(jobs, await _cursor(queue, wanted, start, index + 1), scanned)
            start = page.next
            if start is None:
                break
            if len(jobs) >= limit or scanned >= SCAN:
                return Found(jobs, f"{queue.name}~{start}", scanned)
        if (len(jobs) >= limit or scanned >= SCAN) and queue is not left[-1]:
            following = left[left.index(queue) + 1]
            return Found(jobs, f"{following.name}~", scanned)
    return Found(jobs, None, scanned)


async def _cursor(queue: Queue, wanted: Filter, start: str | None, size: int) -> str | None:
    page = await find(queue, wanted, start, size)
    return None if page.next is None else f"{queue.name}~{page.next}"


async def find(queue: Queue, wanted: Filter, after: str | None, limit: int, *, newest_first: bool = True) -> JobPage:
    return await queue.find(
        *(wanted.states or STATES),
        name=wanted.name or None,
        tag=wanted.tag or None,
        limit=max(1, limit),
        after=after,
        newest_first=newest_first,
    )


async def matching(
    queues: Sequence[Queue], wanted: Filter, redact: Redact | None, states: tuple[State, ...]
) -> AsyncIterator[tuple[Queue, list[FoundJob], int]]:
    """All jobs in these states that match, in portions, with the number of jobs that were looked at."""
    for queue in queues:
        if wanted.id:
            job = await queue.get(wanted.id)
            if job is not None and job.snapshot.state in states:
                yield queue, [job], 1
            continue
        after: str | None = None
        while True:
            page = await find(queue, wanted._replace(states=states), after, BATCH, newest_first=False)
            yield queue, [job for job in page if wanted.matches(job, redact)], len(page)
            after = page.next
            if after is None:
                break
