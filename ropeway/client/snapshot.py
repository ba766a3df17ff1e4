"""`Snapshot`: a job at the moment of reading, in Python's types."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from ..job.codec import Json, decode
from ..job.flows import Parent
from ..job.instants import moment_of
from ..job.options import StoredOptions, stored_options
from ..job.record import JobRecord
from ..job.states import State

T = TypeVar("T")


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The job as of one moment (`job.snapshot`)."""

    id: str
    queue: str
    name: str
    data: Json
    state: State
    priority: int
    lifo: bool
    """True if it goes ahead of all earlier jobs of its priority."""
    attempts: int
    """Number of attempts that it may have."""
    attempts_made: int
    attempts_started: int
    stalled_count: int
    created_at: datetime
    due_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    expires_at: datetime | None = None
    """When retention removes it by age; None while it is not finished."""
    worker: str | None = None
    renewed_at: datetime | None = None
    """When its lock was last renewed, or claimed."""
    lock_until: datetime | None = None
    reason: str | None = None
    progress: Json = None
    result: Json = None
    tags: tuple[str, ...] = ()
    parents: tuple[Parent, ...] = ()
    """Jobs that wait for it."""
    children: int = 0
    """How many children it has, including ended ones; `queue.children(id)` lists them."""
    corrupt: tuple[str, ...] = ()
    """Names of fields that cannot be read, because of damage or another version; they have their defaults here."""

    def as_dict(self) -> dict[str, Any]:
        """The fields by name, as JSON has them: times are RFC 3339 texts. For the answers of web frameworks."""
        fields: dict[str, Any] = msgspec.to_builtins(self)
        return fields


def snapshot_of(record: JobRecord) -> Snapshot:
    created_at = moment_of(record.created_at)
    assert created_at is not None
    corrupt: list[str] = []

    def read(part: str, text: str | None, reader: Callable[[str], T], otherwise: T) -> T:
        try:
            return otherwise if text is None else reader(text)
        except msgspec.MsgspecError:
            corrupt.append(part)
            return otherwise

    return Snapshot(
        id=record.id,
        queue=record.queue,
        name=record.name,
        data=read("data", record.data, decode, None),
        state=record.state,
        priority=record.priority,
        lifo=record.order < 0,
        attempts=read("options", record.options, stored_options, StoredOptions()).attempts,
        attempts_made=record.attempts_made,
        attempts_started=record.attempts_started,
        stalled_count=record.stalled_count,
        created_at=created_at,
        due_at=moment_of(record.due_at),
        started_at=moment_of(record.started_at),
        finished_at=moment_of(record.finished_at),
        expires_at=moment_of(record.expires_at),
        worker=record.worker,
        renewed_at=moment_of(record.renewed_at),
        lock_until=moment_of(record.lock_until),
        reason=record.reason,
        progress=read("progress", record.progress, decode, None),
        result=read("result", record.result, decode, None),
        tags=record.tags,
        parents=record.parents,
        children=record.children,
        corrupt=tuple(corrupt),
    )
