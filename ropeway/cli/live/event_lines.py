"""Event entries as readable lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from ...job.events import PUBLISHED, Entry
from ...job.instants import LAST_INSTANT
from ...job.moves import MOVES
from ...job.states import FINAL
from ..text import as_json
from .picture import HappenedEvent
from .texts import seconds

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
    details = entry.data_of(entry.jobs[0][1] if entry.jobs else None)
    return HappenedEvent(
        entry.at, queue, headline(entry), len(ids), ids[0] if ids else None, tuple(names), note(entry, details)
    )


def _about(entry: Entry) -> list[str]:
    """The job of an entry that its writer names, if it has one."""
    job_id = (entry.detail or {}).get("job") if entry.what == PUBLISHED else None
    return [] if job_id is None else [job_id]


def note(entry: Entry, details: dict[str, Any]) -> str:
    """The details of an entry; for several jobs, those of the first."""
    if (write := _NOTES.get(entry.what)) is not None:
        return write(details)
    if entry.to == "delayed" and "due_at" in details:
        due = details["due_at"]
        return "until it is woken" if due == LAST_INSTANT else f"for {seconds(max(0, due - entry.at) / 1000)}"
    return str(details.get("reason", ""))


def _phase(details: dict[str, Any]) -> str:
    return f"{details.get('phase')}, {details.get('number')} of {details.get('of')}"


def _paused(details: dict[str, Any]) -> str:
    return str(details.get("name", "the whole queue"))


_NOTES: Final[dict[str, Callable[[dict[str, Any]], str]]] = {
    "retry": lambda details: f"attempt {details.get('attempt')}: {details.get('reason')}",
    "cleaned": lambda details: f"{details.get('count')} {details.get('state')}",
    "paused": _paused,
    "resumed": _paused,
    "published": lambda details: as_json(details.get("data")),
    "phase-started": _phase,
    "phase-completed": _phase,
    "signalled": lambda details: str(details.get("name")),
}
"""Writes the note of an entry from its details, by the kind of entry."""
