"""Reading schedules, damaged ones too."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec
from cronsim import CronSimError

from ..job.codec import decode
from ..job.cron import zone_of
from ..job.instants import Instant, moment_of
from ..job.schedules import LATE_AFTER, ScheduleState, Template
from ..store.values import StoredSchedule
from .queue import Queue
from .schedule import Schedule, schedule_of
from .schedules import PAGE

Standing: TypeAlias = Literal["due", "late", "paused", "ended", "damaged"]
"""`due` if it will fire, and `late` if it should have."""


class FoundSchedule(NamedTuple):
    queue: Queue
    stored: StoredSchedule
    schedule: Schedule | None
    """None if it cannot be read."""
    damage: str = ""
    """Why it cannot be read."""

    @property
    def id(self) -> str:
        return self.stored.id

    @property
    def next_at(self) -> datetime | None:
        return moment_of(self.stored.next_at)

    @property
    def template(self) -> Template:
        return msgspec.json.decode(self.stored.value, type=ScheduleState).template

    def standing(self, now: Instant) -> Standing:
        if self.schedule is None:
            return "damaged"
        if self.stored.next_at is None:
            return "paused" if self.schedule.paused else "ended"
        return "late" if self.stored.next_at < now - LATE_AFTER else "due"

    def document(self, now: Instant) -> dict[str, Any]:
        """For `--json`."""
        if self.schedule is None:
            known = {"queue": self.queue.name, "id": self.id, "version": self.stored.version}
            return {**known, "state": "damaged", "damage": self.damage}
        return {**self.schedule.as_dict(), "options": options_of(self.template), "state": self.standing(now)}

    def summary(self, now: Instant) -> dict[str, Any]:
        """The same for lists: the last tick in place of the history."""
        document = self.document(now)
        ticks = document.pop("history", ())
        return {**document, "last": ticks[-1] if ticks else None}


def options_of(template: Template) -> dict[str, Any]:
    """The options of the jobs that it makes, as far as they were given."""
    stored = decode(template.options)
    assert isinstance(stored, dict)
    placed = {
        "priority": template.priority,
        "lifo": template.lifo,
        "tags": template.tags,
        "expires_ms": template.start_within,
        "dead_letter": template.dead_letter,
    }
    return {**stored, **{name: value for name, value in placed.items() if value}}


async def schedules_of(queue: Queue, most: int | None = None) -> AsyncIterator[FoundSchedule]:
    """The schedules of a queue, by id; all, or the first ones."""
    after: str | None = None
    left = 2**53 if most is None else most
    while left > 0:
        size = min(PAGE, left)
        page = await queue.store.schedules(queue.name, after=after, limit=size)
        for stored in page:
            yield found(queue, stored)
        if len(page) < size:
            return
        left -= size
        after = page[-1].id


def found(queue: Queue, stored: StoredSchedule) -> FoundSchedule:
    try:
        schedule = schedule_of(queue.name, stored)
        zone_of(schedule.rule.tz)
        return FoundSchedule(queue, stored, schedule)
    except (msgspec.MsgspecError, CronSimError, LookupError, ValueError, OSError) as damage:
        # Zones and expressions too: another machine may know more zones, another version other expressions.
        return FoundSchedule(queue, stored, None, f"{damage}")
