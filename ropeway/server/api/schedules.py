"""Schedules: rules that make jobs."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec import UNSET, UnsetType

from ...client.schedule import ScheduleOptions
from ...errors import ScheduleNotFound
from ...job.schedules import Missed, Overlap
from ..job_fields import JobFields, Span, options_of, queues_of
from ..routes import Call, Route
from ..views import ScheduleView, schedule_view
from .submitting import Submitted


class ScheduleFields(JobFields, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rule, by `cron` or `every`, and the job that it makes."""

    cron: str | UnsetType = UNSET
    """Five fields, six with seconds first, or "@daily" and the like."""
    tz: str | UnsetType = UNSET
    """The time zone of `cron`; UTC by default."""
    every: Span | UnsetType = UNSET
    """Instead of `cron`: time between two jobs."""
    offset: Span | UnsetType = UNSET
    """How much later than the aligned slots of `every`."""
    start: datetime | UnsetType = UNSET
    end: datetime | UnsetType = UNSET
    limit: int | UnsetType = UNSET
    """Number of jobs in all."""
    overlap: Overlap | UnsetType = UNSET
    """While an earlier job is not final."""
    missed: Missed | UnsetType = UNSET
    """Ticks at which nothing ran."""
    immediately: bool | UnsetType = UNSET
    """Once more, at once, when it is created."""


class ScheduleViews(msgspec.Struct, frozen=True):
    schedules: list[ScheduleView]


class RemovedSchedule(msgspec.Struct, frozen=True):
    removed: bool
    """False if there was none."""


async def list_schedules(call: Call) -> ScheduleViews:
    return ScheduleViews([schedule_view(schedule) for schedule in await call.queue.schedules.list()])


async def get_schedule(call: Call) -> ScheduleView:
    found = await call.queue.schedules.get(call.params["schedule"])
    if found is None:
        raise ScheduleNotFound(call.queue.name, call.params["schedule"])
    return schedule_view(found)


async def put_schedule(call: Call) -> ScheduleView:
    asked: ScheduleFields = call.body
    call.broker.schemas.check([(call.queue.name, asked.type, asked.payload)])
    when: dict[str, Any] = {
        name: value for name in ScheduleOptions.__optional_keys__ if (value := getattr(asked, name)) is not UNSET
    }
    limits = call.broker.limits
    options = options_of(asked, call.queue.defaults, attempts=limits.attempts, drops=limits.drop_exhausted)
    job = {name: value for name, value in options.items() if name not in when}
    # Its ticks are made by the upkeep, as long as no worker in Python does that.
    await call.broker.upkeep.include(call.queue.name)
    put = call.queue.schedules.put
    return schedule_view(await put(call.params["schedule"], asked.type, asked.payload, **when, **job))


async def pause_schedule(call: Call) -> ScheduleView:
    return schedule_view(await call.queue.schedules.pause(call.params["schedule"]))


async def resume_schedule(call: Call) -> ScheduleView:
    return schedule_view(await call.queue.schedules.resume(call.params["schedule"]))


async def run_schedule(call: Call) -> Submitted:
    handle = await call.queue.schedules.run(call.params["schedule"])
    return Submitted(handle.id, handle.created, handle.deduplicated)


async def remove_schedule(call: Call) -> RemovedSchedule:
    return RemovedSchedule(await call.queue.schedules.remove(call.params["schedule"]))


_ALL: Final = "/v1/queues/{queue}/schedules"
_ONE: Final = f"{_ALL}/{{schedule}}"

ROUTES: Final = (
    Route("GET", _ALL, list_schedules, ("read",), "The schedules of a queue.", answer=ScheduleViews, tag="schedules"),
    Route("GET", _ONE, get_schedule, ("read",), "A schedule.", answer=ScheduleView, tag="schedules"),
    Route(
        "PUT",
        _ONE,
        put_schedule,
        ("operate",),
        "Creates a schedule, or changes it.",
        body=ScheduleFields,
        answer=ScheduleView,
        audited=True,
        queues=queues_of,
        tag="schedules",
    ),
    Route(
        "POST",
        f"{_ONE}/pause",
        pause_schedule,
        ("operate",),
        "Stops its ticks.",
        answer=ScheduleView,
        audited=True,
        tag="schedules",
    ),
    Route(
        "POST",
        f"{_ONE}/resume",
        resume_schedule,
        ("operate",),
        "Ends its pause.",
        answer=ScheduleView,
        audited=True,
        tag="schedules",
    ),
    Route(
        "POST",
        f"{_ONE}/run",
        run_schedule,
        ("operate",),
        "Makes a job of it now.",
        answer=Submitted,
        audited=True,
        tag="schedules",
    ),
    Route(
        "DELETE",
        _ONE,
        remove_schedule,
        ("operate",),
        "Removes it, with its jobs that have not begun.",
        answer=RemovedSchedule,
        audited=True,
        tag="schedules",
    ),
)
