"""`Snapshot`: a job at the moment of reading, in Python's types."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from ..job.codec import Json, decode
from ..job.extras import Origin
from ..job.flows import Parent
from ..job.instants import LAST_INSTANT, moment_of
from ..job.options import StoredOptions, stored_options
from ..job.phases import PhaseStatus, is_completed_pipeline, phases_of
from ..job.record import JobRecord
from ..job.states import State
from ..job.steps import StepStatus, Wait, steps_of, wait_of
from .payload_versions import marked_version

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
    version: int = 1
    """Of its data."""
    start_by: datetime | None = None
    """It fails unless it was started by then (option `expires`)."""
    dead_letter: str | None = None
    """The queue that gets a copy if it fails for good."""
    dedupe: str | None = None
    """Its dedupe key."""
    schedule: str | None = None
    """The id of the schedule that made it."""
    origin: Origin | None = None
    """Of a dead letter or a delivery: the job whose end added it."""
    phases: tuple[PhaseStatus, ...] = ()
    """The phases of its pipeline, in order; not in lists of jobs."""
    steps: tuple[StepStatus, ...] = ()
    """Its steps that have ended, and its sleeps, waits and gathers, in their order; not in lists of jobs."""
    waits_for: Wait | None = None
    """The signal that it is delayed for, by `job.wait_for`; not in lists of jobs."""
    webhook: str | None = None
    """The URL to which its end is reported; of a delivery, that to which it goes."""
    corrupt: tuple[str, ...] = ()
    """Names of fields that cannot be read, because of damage or another version; they have their defaults here."""

    def as_dict(self) -> dict[str, Any]:
        """The fields by name, as JSON has them: times are RFC 3339 texts. For the answers of web frameworks."""
        fields: dict[str, Any] = msgspec.to_builtins(self)
        return fields


def attempts_of(job: Snapshot) -> int:
    """The number of its attempts so far: those that failed, and the current or successful one."""
    return job.attempts_made + (job.state in ("active", "completed"))


def is_due_when_woken(job: Snapshot) -> bool:
    """True if it is delayed without a time: it waits for a signal without a timeout."""
    return job.due_at == moment_of(LAST_INSTANT)


def _extras(record: JobRecord) -> dict[str, Any]:
    extras = record.extras
    if extras is None:
        return {}
    return {
        "start_by": moment_of(extras.deadline(record.created_at)),
        "dead_letter": extras.dead_letter,
        "dedupe": None if extras.dedupe is None else extras.dedupe.key,
        "schedule": extras.schedule,
        "origin": extras.origin,
        "webhook": None if extras.webhook is None else extras.webhook.url,
    }


def _marks(record: JobRecord, corrupt: list[str]) -> dict[str, Any]:
    try:
        return {"phases": phases_of(record), "steps": steps_of(record.marks), "waits_for": wait_of(record)}
    except msgspec.MsgspecError:
        corrupt.append("marks")
        return {}


def snapshot_of(record: JobRecord) -> Snapshot:
    corrupt: list[str] = []

    def read(part: str, text: str | None, reader: Callable[[str], T], otherwise: T) -> T:
        try:
            return otherwise if text is None else reader(text)
        except msgspec.MsgspecError:
            corrupt.append(part)
            return otherwise

    data = read("data", record.data, decode, None)
    progress = read("progress", record.progress, decode, None)
    if is_completed_pipeline(record) and (progress is None or isinstance(progress, int | float)):
        # The last that was stored is the start of the last phase, or what that reported.
        progress = 100
    options = read("options", record.options, stored_options, StoredOptions())
    return Snapshot(
        id=record.id,
        queue=record.queue,
        name=record.name,
        data=data,
        state=record.state,
        priority=record.priority,
        lifo=record.order < 0,
        attempts=options.attempts,
        attempts_made=record.attempts_made,
        attempts_started=record.attempts_started,
        stalled_count=record.stalled_count,
        created_at=moment_of(record.created_at),
        due_at=moment_of(record.due_at),
        started_at=moment_of(record.started_at),
        finished_at=moment_of(record.finished_at),
        expires_at=moment_of(record.expires_at),
        worker=record.worker,
        renewed_at=moment_of(record.renewed_at),
        lock_until=moment_of(record.lock_until),
        reason=record.reason,
        progress=progress,
        result=read("result", record.result, decode, None),
        tags=record.tags,
        parents=record.parents,
        children=record.children,
        **_extras(record),
        **(_marks(record, corrupt) if record.marks or '"phases"' in record.options else {}),
        version=marked_version(record) or options.version,
        corrupt=tuple(corrupt),
    )
