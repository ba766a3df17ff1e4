"""Firing schedules that are due."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from zoneinfo import ZoneInfoNotFoundError

import msgspec

from ... import logger
from ...client.skipped_ticks import corrections
from ...job.instants import Instant
from ...job.schedules import LATE_AFTER, ScheduleState, fire
from ...store.contract import Store
from ...store.values import ScheduleWrite, StoredSchedule

_encode: Final = msgspec.json.Encoder().encode


async def fire_schedules(store: Store, queue: str, due: Sequence[StoredSchedule], now: Instant) -> None:
    """Moves schedules on and adds the jobs of their ticks, unless another worker was faster."""
    states: list[ScheduleState | None] = []
    writes: list[ScheduleWrite] = []
    for schedule in due:
        state, write = _fired(queue, schedule, now)
        states.append(state)
        writes.append(write)
    answers = await store.write_schedules(queue, writes)
    if again := corrections(states, answers):
        await store.write_schedules(queue, again)


def _fired(queue: str, schedule: StoredSchedule, now: Instant) -> tuple[ScheduleState | None, ScheduleWrite]:
    """One that cannot be fired is moved too, or all that are due after it would wait for it."""
    assert schedule.next_at is not None, "it is due"
    try:
        state = msgspec.json.decode(schedule.value, type=ScheduleState)
        firing = fire(queue, schedule.id, state, schedule.next_at, now)
    except ZoneInfoNotFoundError as unknown:
        # Workers on other machines may know it.
        logger.log.error(
            "schedule %s of %s is put off by %g s: this machine knows no zone %s; pip install tzdata",
            schedule.id,
            queue,
            LATE_AFTER / 1000,
            unknown,
        )
        return None, ScheduleWrite(schedule.id, schedule.value, now + LATE_AFTER, schedule.version)
    except Exception as damage:  # noqa: BLE001 - whatever is wrong with one, the others fire
        logger.log.error(
            "schedule %s of %s cannot be read and fires no more; make it again: %s", schedule.id, queue, damage
        )
        return None, ScheduleWrite(schedule.id, schedule.value, None, schedule.version)
    value = _encode(firing.state).decode()
    return firing.state, ScheduleWrite(schedule.id, value, firing.next_at, schedule.version, firing.jobs)
