from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from ....job.instants import LAST_INSTANT, Instant
from ....job.numbers import LEAST_URGENT, MOST_URGENT, whole
from ....job.record import JobRecord
from ....job.states import OPEN, State
from ....store.commands import Change
from ....store.values import Answer, JobChange
from ..step import Step
from .answers import DONE, MISSING, REFUSED

_IN_LINE: Final[tuple[State, ...]] = ("waiting", "delayed", "waiting-children")


def change(step: Step, command: Change) -> list[Answer]:
    for change in command.changes:
        _check(change)
    queue = step.queue(command.queue)
    answers = []
    for change in command.changes:
        job = queue.jobs.get(change.id)
        if job is None:
            answers.append(MISSING)
        elif not _is_allowed(job, change):
            answers.append(REFUSED[job.state])
        else:
            answers.append(DONE[job.state])
            changed, detail = _edited(job, change, step.now)
            if detail:
                queue.put(changed)
                queue.entry("changed").append((job.id, detail))
                step.wake(command.queue)
    return answers


def _check(change: JobChange) -> None:
    for option, given, least, most in (
        ("priority", change.priority, MOST_URGENT, LEAST_URGENT),
        ("delay", change.delay, 0, LAST_INSTANT),
        ("due_at", change.due_at, 0, LAST_INSTANT),
    ):
        if given is not None:
            whole(option, given, least, most)


def _is_allowed(job: JobRecord, change: JobChange) -> bool:
    moves = change.priority is not None or change.lifo is not None
    delays = change.delay is not None or change.due_at is not None
    return job.state in OPEN and (not moves or job.state in _IN_LINE) and (not delays or job.state == "delayed")


def _edited(job: JobRecord, change: JobChange, now: Instant) -> tuple[JobRecord, dict[str, Any]]:
    """The changed job, and the detail of its event."""
    detail: dict[str, Any] = {}
    fields: dict[str, Any] = {}
    if change.priority is not None:
        fields["priority"] = detail["priority"] = change.priority
    if change.lifo is not None:
        detail["lifo"] = change.lifo
        fields["order"] = -abs(job.order) if change.lifo else abs(job.order)
    if change.delay is not None or change.due_at is not None:
        due_at = change.due_at if change.delay is None else min(now + change.delay, LAST_INSTANT)
        fields["due_at"] = detail["due_at"] = due_at
    if change.data is not None:
        fields["data"] = change.data
        detail["data"] = True
    return replace(job, **fields), detail
