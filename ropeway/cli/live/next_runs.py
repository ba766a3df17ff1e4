"""The next runs of a queue's schedules, with few reads."""

from __future__ import annotations

from typing import Final

import msgspec

from ...job.instants import Instant
from ...job.schedules import ScheduleState
from ...store.contract import Store
from ...store.values import StoredSchedule
from .picture import NextRun

SCHEDULES: Final = 1_000
"""Most schedules of a queue that are read: each comes with its data and history."""
SHOWN: Final = 10
AGAIN: Final = 10_000
"""Milliseconds after which all are read again."""


class NextRuns:
    """Reads all schedules now and then, and in between only those that were due."""

    def __init__(self) -> None:
        self._schedules: dict[str, StoredSchedule] = {}
        self._read_at: Instant = -AGAIN

    async def look(self, store: Store, queue: str, now: Instant) -> None:
        if now - self._read_at >= AGAIN:
            self._schedules = {each.id: each for each in await store.schedules(queue, limit=SCHEDULES)}
            self._read_at = now
        elif due := [id for id, each in self._schedules.items() if each.next_at is not None and each.next_at <= now]:
            self._schedules |= {each.id: each for each in await store.schedules(queue, due)}

    def upcoming(self, queue: str, now: Instant) -> list[NextRun]:
        """The earliest first."""
        waiting = sorted((each.next_at, id) for id, each in self._schedules.items() if each.next_at is not None)
        return [NextRun(at, queue, id, _job_name(self._schedules[id]), (at - now) / 1000) for at, id in waiting[:SHOWN]]


def _job_name(schedule: StoredSchedule) -> str:
    try:
        return msgspec.json.decode(schedule.value, type=ScheduleState).template.name
    except msgspec.MsgspecError:
        return ""
