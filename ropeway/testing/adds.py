"""Jobs as they were when they were added."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

import msgspec

from ..job.codec import Json, decode
from ..job.flows import Child, Parent
from ..job.instants import Instant, Milliseconds
from ..job.options import StoredOptions, read_options, stored_options
from ..job.record import NewJob

_FIELDS: Final = {"remove_on_complete": "keep_completed", "remove_on_fail": "keep_failed"}
"""Options that are stored under another name."""


class AddedJob(msgspec.Struct, frozen=True, kw_only=True):
    """The result of `added` and `assert_added`: the job as it was added, whatever happened to it since."""

    queue: str
    id: str
    name: str
    data: Json
    delay: timedelta
    """Time from the add until it is due; 0 if it is due at once."""
    priority: int
    lifo: bool
    tags: tuple[str, ...]
    options: StoredOptions
    """The remaining options: attempts, backoff, timeout and so on."""
    added_at: Instant
    parents: tuple[Parent, ...] = ()
    """Jobs of its flow that wait for it."""
    children: tuple[Child, ...] = ()
    """Jobs of its flow that it waits for, each with the policy for its failure."""

    def option(self, option: str) -> Any:
        """The value of an option, as it is stored."""
        if option in ("id", "delay", "priority", "lifo", "tags"):
            return getattr(self, option)
        return getattr(self.options, _FIELDS.get(option, option))

    def expected(self, option: str, given: Any) -> Any:
        """What `option` would return if the job had been added with this value."""
        placement, stored = read_options({option: given})
        match option:
            case "delay":
                return _delay(placement.delay, placement.due_at, self.added_at)
            case "id" | "priority" | "lifo" | "tags":
                return getattr(placement, option)
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
        parents=job.parents,
        children=job.children,
    )


def _delay(delay: Milliseconds, due_at: Instant | None, at: Instant) -> timedelta:
    return timedelta(milliseconds=delay if due_at is None else max(0, due_at - at))
