"""A job as it was when it was added."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

import msgspec

from ..job.codec import Json, decode
from ..job.instants import Instant, Milliseconds
from ..job.options import StoredOptions, read_options, stored_options
from ..job.record import NewJob

_FIELDS: Final = {"remove_on_complete": "keep_completed", "remove_on_fail": "keep_failed"}
"""Options that are kept under another name."""


class AddedJob(msgspec.Struct, frozen=True, kw_only=True):
    """What `added` and `assert_added` answer: whatever became of the job since, this is what was added."""

    queue: str
    id: str
    name: str
    data: Json
    delay: timedelta
    """From when it was added until it was due; 0 if that was at once."""
    priority: int
    lifo: bool
    tags: tuple[str, ...]
    options: StoredOptions
    """The rest: attempts, backoff, timeout and so on."""
    added_at: Instant

    def option(self, option: str) -> Any:
        """What it was given for an option, as far as that is kept."""
        if option in ("id", "delay", "priority", "lifo", "tags"):
            return getattr(self, option)
        return getattr(self.options, _FIELDS.get(option, option))

    def expected(self, option: str, given: Any) -> Any:
        """What `option` would answer if it had been added with this value."""
        place, stored = read_options({option: given})
        match option:
            case "delay":
                return _delay(place.delay, place.due_at, self.added_at)
            case "id" | "priority" | "lifo" | "tags":
                return getattr(place, option)
        return getattr(stored_options(stored), _FIELDS.get(option, option))

    def __str__(self) -> str:
        placed = {
            "delay": str(self.delay) if self.delay else None,
            "priority": self.priority,
            "lifo": self.lifo,
            "tags": self.tags,
        }
        kept = msgspec.to_builtins(self.options)
        said = "".join(f" {option}={value}" for option, value in {**placed, **kept}.items() if value)
        return f"{self.name} {self.data!r}{said}"


def added_job(job: NewJob, at: Instant) -> AddedJob:
    return AddedJob(
        queue=job.queue,
        id=job.id,
        name=job.name,
        data=decode(job.data),
        delay=_delay(job.delay, job.due_at, at),
        priority=job.priority,
        lifo=job.lifo,
        tags=job.tags,
        options=stored_options(job.options),
        added_at=at,
    )


def _delay(delay: Milliseconds, due_at: Instant | None, at: Instant) -> timedelta:
    return timedelta(milliseconds=delay if due_at is None else max(0, due_at - at))
