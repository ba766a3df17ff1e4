"""Steps of a job: parts of its handler whose results are kept as marks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from .codec import Json, JsonText
from .instants import LAST_INSTANT, Instant, moment_of
from .marks import SIGNAL, SLEEP, STEP, WAIT, Mark, phase_and_name
from .record import JobRecord


class StepResult(msgspec.Struct, frozen=True):
    """The value of a step's mark."""

    result: Json = None
    took: float = 0.0
    """Seconds, by the worker's clock."""
    reason: str | None = None
    """What its function raised, if it has failed for good."""


class StepStatus(msgspec.Struct, frozen=True):
    """A step of a job that has its result, or has failed for good."""

    name: str
    ended_at: datetime
    took: float
    """Seconds."""
    result: Json = None
    phase: str | None = None
    """The phase that it is a part of, if the handler is a pipeline."""
    reason: str | None = None
    """Why it has failed for good, if it has."""


def steps_of(marks: Sequence[Mark]) -> tuple[StepStatus, ...]:
    """Its steps in the order in which they ended."""
    found = []
    for mark in marks:
        if mark.name.startswith(STEP):
            step = msgspec.json.decode(mark.value, type=StepResult)
            phase, name = phase_and_name(mark.name, STEP)
            found.append(StepStatus(name, moment_of(mark.at), step.took, step.result, phase, step.reason))
    return tuple(sorted(found, key=lambda step: step.ended_at))


class WaitEnd(msgspec.Struct, frozen=True, omit_defaults=True):
    """The value of a wait's mark once it has ended; before that, it is the instant until which it lasts."""

    data: Json = None
    """That of the signal."""
    is_late: bool = False
    """True if none came in time."""


def read_wait(value: JsonText) -> Instant | WaitEnd:
    return msgspec.json.decode(value, type=Instant | WaitEnd)


class Wait(msgspec.Struct, frozen=True):
    """What a delayed job waits for, by `job.wait_for`."""

    signal: str
    until: datetime | None = None
    """When it goes on without the signal; None if never."""


def wait_of(record: JobRecord) -> Wait | None:
    """What it waits for, if the job is delayed, and since then no signal came and no other wait or sleep began."""
    if record.state != "delayed":
        return None
    begun = [mark for mark in record.marks if mark.name.startswith((WAIT, SLEEP))]
    newest = max(begun, key=lambda mark: mark.at, default=None)
    if newest is None or not newest.name.startswith(WAIT):
        return None
    signal = phase_and_name(newest.name, WAIT)[1]
    if any(mark.name == SIGNAL + signal for mark in record.marks):
        return None
    until = read_wait(newest.value)
    if isinstance(until, WaitEnd):
        return None
    return Wait(signal, None if until >= LAST_INSTANT else moment_of(until))
