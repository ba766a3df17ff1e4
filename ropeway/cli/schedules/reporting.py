"""The output of commands that change a schedule."""

from __future__ import annotations

from ...client.schedule import Schedule
from ...job.instants import Instant, moment_of
from ..text import clock_time
from .words import distance


def in_words(schedule: Schedule, now: Instant) -> str:
    """`is paused`, `has ended`, or when it runs next."""
    if schedule.next_at is None:
        return "is paused" if schedule.paused else "has ended: no run is left"
    return f"runs next at {clock_time(schedule.next_at)}, {distance(schedule.next_at, moment_of(now))}"
