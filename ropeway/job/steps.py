"""Steps of a job: parts of its handler whose results are kept as marks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from .codec import Json
from .instants import moment_of
from .marks import STEP, Mark, phase_and_name


class StepResult(msgspec.Struct, frozen=True):
    """The value of a step's mark."""

    result: Json = None
    took: float = 0.0
    """Seconds, by the worker's clock."""


class StepStatus(msgspec.Struct, frozen=True):
    """A step of a job that has its result."""

    name: str
    ended_at: datetime
    took: float
    """Seconds."""
    result: Json = None
    phase: str | None = None
    """The phase that it is a part of, if the handler is a pipeline."""


def steps_of(marks: Sequence[Mark]) -> tuple[StepStatus, ...]:
    """Its steps in the order in which they ended."""
    found = []
    for mark in marks:
        if mark.name.startswith(STEP):
            step = msgspec.json.decode(mark.value, type=StepResult)
            phase, name = phase_and_name(mark.name, STEP)
            found.append(StepStatus(name, moment_of(mark.at), step.took, step.result, phase))
    return tuple(sorted(found, key=lambda step: step.ended_at))
