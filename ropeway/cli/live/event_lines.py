"""Event entries as readable lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from ...job.events import PUBLISHED, Entry
from ...job.moves import MOVES
from ...job.states import FINAL
from ..text import as_json
from .picture import HappenedEvent

NAMES: Final = 3
UNTOLD: Final = ("progress",)
"""Entries that are left out, because running jobs show them already."""


def headline(entry: Entry) -> str:
    """The most informative event name of an entry: the end of a job, or else what led to its state."""
    if entry.what == PUBLISHED and entry.detail is not None:
        return str(entry.detail["name"])
    move = MOVES.get(entry.what)
    if move is None:
        return entry.what
    names = move.events(entry.to)
    return names[-1] if entry.to in FINAL else names[0]


def notable(entries: Sequence[Entry], limit: int) -> Iterator[Entry]:
    """The newest entries that are worth a line, newest first."""
    for entry in reversed(entries):
        if limit <= 0:
            return
        if entry.what not in UNTOLD:
            limit -= 1
            yield entry


def happened(queue: str, entry: Entry, name_of: Callable[[str], str | None]) -> HappenedEvent:
    ids = [job_id for job_id, _ in entry.jobs] or _about(entry)
    names = dict.fromkeys(name for job_id in ids[:NAMES] if (name := name_of(job_id)))
    details = {**(entry.detail or {}), **((entry.jobs[0][1] if entry.jobs else None) or {})}
    return HappenedEvent(
        entry.at, queue, headline(entry), len(ids), ids[0] if ids else None, tuple(names), note(entry, details)
    )


def _about(entry: Entry) -> list[str]:
    """The job of an entry that its writer names, if it has one."""
    job_id = (entry.detail or {}).get("job") if entry.what == PUBLISHED else None
    return [] if job_id is None else [job_id]


def note(entry: Entry, details: dict[str, Any]) -> str:
    """The details of an entry; for several jobs, those of the first."""
    match entry.what:
        case "retry":
            return f"attempt {details.get('attempt')}: {details.get('reason')}"
        case "cleaned":
            return f"{details.get('count')} {details.get('state')}"
        case "paused" | "resumed":
            return str(details.get("name", "the whole queue"))
        case "published":
            return as_json(details.get("data"))
    if entry.to == "delayed" and "due_at" in details:
        return f"for {max(0, details['due_at'] - entry.at) / 1000:.1f} s"
    return str(details.get("reason", ""))
