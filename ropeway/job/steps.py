"""Steps of a job: parts of its handler whose results are kept as marks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal, TypeAlias

import msgspec

from .codec import Json, JsonText
from .instants import LAST_INSTANT, Instant, moment_of
from .marks import GATHER, SIGNAL, SLEEP, STEP, WAIT, Mark, phase_and_name, scoped_kind
from .record import JobRecord

StepKind: TypeAlias = Literal["step", "sleep", "wait", "gather"]


class StepResult(msgspec.Struct, frozen=True):
    """The value of a step's mark."""

    result: Json = None
    took: float = 0.0
    """Seconds, by the worker's clock."""
    reason: str | None = None
    """What its function raised, if it has failed for good."""


class StepStatus(msgspec.Struct, frozen=True):
    """A stored part of a handler: a step that has ended, or a sleep, wait or gather that has begun."""

    name: str
    """Of a wait the signal; sleeps and gathers without a name are numbered, as `#1`."""
    kind: StepKind
    started_at: datetime
    ended_at: datetime | None
    """When a sleep ends, also if it still lasts. None for a wait that lasts, and for gathers: see their children."""
    took: float | None
    """Seconds; None if `ended_at` is."""
    result: Json = None
    """Of a wait the data of the signal."""
    phase: str | None = None
    """The phase that it is a part of, if the handler is a pipeline."""
    reason: str | None = None
    """Why it has failed for good, if it has."""
    until: datetime | None = None
    """When a sleep ends, or a wait that lasts gives up; None if that never does."""

    def lasts_at(self, moment: datetime) -> bool:
        """True for a sleep or wait that had not ended then."""
        return self.kind != "gather" and (self.ended_at is None or self.ended_at > moment)

    def length_at(self, moment: datetime) -> float | None:
        """The seconds that it took, or lasted until then."""
        return (moment - self.started_at).total_seconds() if self.lasts_at(moment) else self.took


def steps_of(marks: Sequence[Mark]) -> tuple[StepStatus, ...]:
    """Its steps, sleeps, waits and gathers in the order in which they end; those with no known end as they began."""
    found = [_step_of(mark, kind) for mark in marks if (kind := scoped_kind(mark.name)) is not None]
    # What comes after a sleep may begin in the millisecond in which that ends.
    return tuple(sorted(found, key=lambda step: (step.ended_at or step.started_at, step.kind != "sleep")))


def _step_of(mark: Mark, kind: str) -> StepStatus:
    phase, name = phase_and_name(mark.name, kind)
    at = moment_of(mark.at)
    if kind == STEP:
        step = msgspec.json.decode(mark.value, type=StepResult)
        started_at = at - timedelta(seconds=step.took)
        return StepStatus(name, "step", started_at, at, step.took, step.result, phase, step.reason)
    if kind == SLEEP:
        # One until a moment that has passed is over at once.
        until = moment_of(max(mark.at, msgspec.json.decode(mark.value, type=Instant)))
        return StepStatus(name, "sleep", at, until, (until - at).total_seconds(), phase=phase, until=until)
    if kind == GATHER:
        return StepStatus(name, "gather", at, None, None, phase=phase)
    end = read_wait(mark.value)
    if not isinstance(end, WaitEnd):
        return StepStatus(name, "wait", at, None, None, phase=phase, until=_end_of_wait(end))
    started_at = at if end.began is None else moment_of(end.began)
    reason = "no signal came in time" if end.is_late else None
    return StepStatus(name, "wait", started_at, at, (at - started_at).total_seconds(), end.data, phase, reason)


class WaitEnd(msgspec.Struct, frozen=True, omit_defaults=True):
    """The value of a wait's mark once it has ended; before that, it is the instant until which it lasts."""

    data: Json = None
    """That of the signal."""
    is_late: bool = False
    """True if none came in time."""
    began: Instant | None = None
    """None if the signal was there when it began."""


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
    return Wait(signal, _end_of_wait(until))


def _end_of_wait(until: Instant) -> datetime | None:
    return None if until >= LAST_INSTANT else moment_of(until)
