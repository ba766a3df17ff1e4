from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec.structs import replace

from ....job.instants import LAST_INSTANT, Instant
from ....job.numbers import whole
from ....job.options import LEAST_URGENT, MOST_URGENT
from ....job.record import JobRecord
from ....job.states import OPEN, State
from ....store.values import Answer, Edit
from ..step import Step
from .answers import DONE, MISSING, REFUSED

_IN_LINE: Final[tuple[State, ...]] = ("waiting", "delayed", "waiting-children")


def change(step: Step, queue: str, edits: Sequence[Edit]) -> list[Answer]:
    for edit in edits:
        _check(edit)
    book = step.book(queue)
    answers = []
    for edit in edits:
        job = book.jobs.get(edit.id)
        if job is None:
            answers.append(MISSING)
        elif not _is_allowed(job, edit):
            answers.append(REFUSED[job.state])
        else:
            answers.append(DONE[job.state])
            changed, detail = _edited(job, edit, step.now)
            if detail:
                book.put(changed)
                book.entry("changed").append((job.id, detail))
                step.wake(queue)
    return answers


def _check(edit: Edit) -> None:
    for option, given, least, most in (
        ("priority", edit.priority, MOST_URGENT, LEAST_URGENT),
        ("delay", edit.delay, 0, LAST_INSTANT),
        ("due_at", edit.due_at, 0, LAST_INSTANT),
    ):
        if given is not None:
            whole(option, given, least, most)


def _is_allowed(job: JobRecord, edit: Edit) -> bool:
    moves = edit.priority is not None or edit.lifo is not None
    delays = edit.delay is not None or edit.due_at is not None
    return job.state in OPEN and (not moves or job.state in _IN_LINE) and (not delays or job.state == "delayed")


def _edited(job: JobRecord, edit: Edit, now: Instant) -> tuple[JobRecord, dict[str, Any]]:
    """The job as it will be, and what to say of it."""
    detail: dict[str, Any] = {}
    fields: dict[str, Any] = {}
    if edit.priority is not None:
        fields["priority"] = detail["priority"] = edit.priority
    if edit.lifo is not None:
        detail["lifo"] = edit.lifo
        fields["order"] = -abs(job.order) if edit.lifo else abs(job.order)
    if edit.delay is not None or edit.due_at is not None:
        due_at = edit.due_at if edit.delay is None else min(now + edit.delay, LAST_INSTANT)
        fields["due_at"] = detail["due_at"] = due_at
    if edit.data is not None:
        fields["data"] = edit.data
        detail["data"] = True
    return replace(job, **fields), detail
