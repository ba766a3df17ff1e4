"""The next runs of a queue's schedules."""

from __future__ import annotations

from typing import Final

import msgspec

from ...client.known_schedules import KnownSchedules
from ...job.instants import Instant
from ...job.schedules import ScheduleState
from ...store.values import StoredSchedule
from .picture import NextRun

SHOWN: Final = 10
AGAIN: Final = 10_000
"""Milliseconds after which all are read again."""


class NextRuns(KnownSchedules):
    def __init__(self) -> None:
        super().__init__(AGAIN)

    def upcoming(self, queue: str, now: Instant) -> list[NextRun]:
        """The earliest first."""
        waiting = sorted((each.next_at, id) for id, each in self.by_id.items() if each.next_at is not None)
        return [NextRun(at, queue, id, _job_name(self.by_id[id]), (at - now) / 1000) for at, id in waiting[:SHOWN]]


def _job_name(schedule: StoredSchedule) -> str:
    try:
        return msgspec.json.decode(schedule.value, type=ScheduleState).template.name
    except msgspec.MsgspecError:
        return ""
