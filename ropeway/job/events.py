"""Events. Stores write one entry per batch; readers see one event per job.

An entry names a move of the table or a notice. `expand` turns it into events, so their names exist only here and
in the table of moves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from .codec import JsonText
from .instants import Instant
from .moves import MOVES
from .states import STATES, State

NOTICES: Final[tuple[str, ...]] = (
    "progress",
    "drained",
    "paused",
    "resumed",
    "cleaned",
    "changed",
    "duplicated",
    "deduplicated",
    "lock-lost",
    "phase-started",
    "phase-completed",
    "signalled",
    "webhook-delivered",
    "webhook-failed",
    "stale",
    "deleted",
)
"""Events about a job or a queue that are not moves."""

PUBLISHED: Final = "published"
"""The entry of an event that its writer names: one defined by the application, or about the delivery of a webhook."""

LOCAL_EVENTS: Final[tuple[str, ...]] = ("error", "unhandled", "slow-loop", "leaked", "store-reset", "gap")
"""Events that no store writes: a worker emits them to its listeners; `gap` is made by readers of the stream."""

EVENT_NAMES: Final[tuple[str, ...]] = tuple(
    dict.fromkeys(
        [
            *STATES,
            *(name for move in MOVES.values() for name in move.announces),
            "retries-exhausted",
            *NOTICES,
            *LOCAL_EVENTS,
        ]
    )
)

DOUBLE_MOVES: Final[tuple[str, ...]] = tuple(move.name for move in MOVES.values() if move.announces and move.targets)
"""Moves with two events per job."""

EVENTS_KEPT: Final = 10_000


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """One step in a queue, which may have moved several jobs in the same way."""

    what: str
    """The name of a move or a notice."""
    at: Instant
    to: State | None = None
    jobs: list[tuple[str, dict[str, Any] | None]] = []
    """Job ids with details; empty for an entry about the whole queue."""
    detail: dict[str, Any] | None = None
    """Details common to all jobs of the entry."""
    trimmed: int = 0
    """How many of its first events were trimmed; the others keep their numbers."""

    def data_of(self, detail: dict[str, Any] | None) -> dict[str, Any]:
        """All details of one of its jobs: its own, and those that are common to all."""
        return {**(self.detail or {}), **(detail or {})}


class Event(msgspec.Struct, frozen=True):
    """One event; its `id` is a position to resume from: `queue.events(after=event.id)`."""

    id: str
    queue: str
    name: str
    job_id: str | None
    at: Instant
    data: dict[str, Any]


def expand(queue: str, entry_id: str, entry: Entry) -> Iterator[Event]:
    """The events of one entry, always in the same order, so that their ids are stable."""
    if entry.what == PUBLISHED and entry.detail is not None:
        name, job_id, data = entry.detail["name"], entry.detail.get("job"), entry.detail["data"]
        yield Event(f"{entry_id}/0", queue, name, job_id, entry.at, data)
        return
    number = entry.trimmed
    whole_queue: Sequence[tuple[str | None, dict[str, Any] | None]] = [(None, None)]
    jobs = entry.jobs or whole_queue
    for job_id, detail in jobs:
        data = entry.data_of(detail)
        for name in _names(entry, data):
            yield Event(f"{entry_id}/{number}", queue, name, job_id, entry.at, data)
            number += 1


def expand_backwards(queue: str, entry_id: str, entry: Entry) -> Iterator[Event]:
    """The events of `expand`, newest first. Made one at a time: an entry may have more jobs than the caller needs."""
    if not entry.jobs or entry.what == PUBLISHED:
        yield from reversed([*expand(queue, entry_id, entry)])
        return
    number = entry.trimmed + sum(len(_names(entry, entry.data_of(detail))) for _, detail in entry.jobs)
    for job_id, detail in reversed(entry.jobs):
        data = entry.data_of(detail)
        for name in reversed(_names(entry, data)):
            number -= 1
            yield Event(f"{entry_id}/{number}", queue, name, job_id, entry.at, data)


def may_hold(entry: Entry, name: str | None, job_id: str | None) -> bool:
    """Whether an entry can have an event of that name, or of that job; without expanding it."""
    if entry.what == PUBLISHED and entry.detail is not None:
        return name in (None, entry.detail["name"]) and job_id in (None, entry.detail.get("job"))
    is_named = name is None or name == "retries-exhausted" or name in _names(entry, {})
    return is_named and (job_id is None or any(id == job_id for id, _ in entry.jobs))


def published_detail(name: str, data: JsonText, job: str | None) -> JsonText:
    """The detail of an entry `PUBLISHED`, as JSON."""
    detail = {"name": name, "data": msgspec.Raw(data.encode())}
    return msgspec.json.encode(detail if job is None else {**detail, "job": job}).decode()


def events_in(what: str, to: State | None, jobs: int) -> int:
    """The number of events of an entry with so many jobs, without looking at details, which may add one per job."""
    move = MOVES.get(what)
    return (1 if move is None else len(move.events(to))) * (jobs or 1)


def trim_entry(entry: Entry, last: int, gone: int, *, is_newest: bool) -> Entry | None:
    """The rest of an entry whose last event has the number `last`, when events up to the number `gone` are dropped.

    A job's events are kept or dropped together. One job of the newest entry always stays; of others None may remain.
    """
    jobs = len(entry.jobs) or 1
    stays = min((last - gone) // events_in(entry.what, entry.to, 1), jobs)
    if stays <= 0 and not is_newest:
        return None
    stays = max(1, stays)
    if stays == jobs:
        return entry
    trimmed = sum(len(_names(entry, entry.data_of(detail))) for _, detail in entry.jobs[:-stays])
    return replace(entry, jobs=entry.jobs[-stays:], trimmed=entry.trimmed + trimmed)


def split_id(event_id: str) -> tuple[str, int]:
    """The entry id of an event id, and the event's number in it; an entry id alone stands for all its events."""
    entry_id, _, number = event_id.partition("/")
    return entry_id, int(number) if number else 2**53


def _names(entry: Entry, data: dict[str, Any]) -> tuple[str, ...]:
    move = MOVES.get(entry.what)
    if move is None:
        return (entry.what,)
    names = move.events(entry.to)
    return (*names, "retries-exhausted") if data.get("exhausted") else names
