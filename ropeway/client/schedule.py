"""`Schedule`: a schedule as it was last read."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, TypedDict, cast
from zoneinfo import ZoneInfoNotFoundError

import msgspec

from ..job.choices import one_of
from ..job.codec import Json, decode
from ..job.cron import zone_of
from ..job.durations import Duration
from ..job.instants import Instant, instant_of, moment_of
from ..job.numbers import whole
from ..job.options import JobOptions
from ..job.schedules import MISSED, OVERLAPS, Missed, Overlap, Rule, ScheduleState, TickRecord, rule_of
from ..store.values import StoredSchedule

MOST_UPCOMING: Final = 1_000


class ScheduleOptions(TypedDict, total=False):
    """When a schedule fires, and what it does about jobs that overlap and ticks that were missed."""

    cron: str | None
    """Five fields, six with seconds first, or "@daily" and the like."""
    tz: str | None
    """The time zone of `cron`, such as "Europe/Berlin"; UTC by default."""
    every: Duration | None
    """Instead of `cron`: time between ticks, in slots that are aligned to the clock."""
    offset: Duration | None
    """How much later than the aligned slots of `every`."""
    start: datetime | None
    """No tick before this instant."""
    end: datetime | None
    """No tick after this instant."""
    limit: int | None
    """Number of ticks in all."""
    overlap: Overlap
    """While a job of an earlier tick is not final: "allow" (default), "skip", "queue" (one waits), or "cancel" it."""
    missed: Missed
    """Ticks at which no worker ran: one job for all, "once" (default); "all" (at most 100), or "none"."""
    immediately: bool
    """Fires once more, at once, when it is created."""


class TaskSchedule(TypedDict, total=False):
    """The rule of a task's own schedule: `@queue.task(cron="0 9 * * *", tz="Europe/Berlin")`."""

    cron: str | None
    """A schedule named as the task, stored when a worker of the queue starts."""
    tz: str | None
    every: Duration | None
    """Instead of `cron`: time between ticks."""
    overlap: Overlap
    missed: Missed


class TaskOptions(TaskSchedule, JobOptions, total=False):
    """Options of `@queue.task`: those of its jobs, and a rule that makes them."""


def split_options(given: TaskOptions) -> tuple[JobOptions, TaskSchedule]:
    """The options of a task's jobs, and those of its schedule."""
    of_schedule = TaskSchedule.__optional_keys__
    jobs = {option: value for option, value in given.items() if option not in of_schedule}
    rule = {option: value for option, value in given.items() if option in of_schedule}
    return cast(JobOptions, jobs), cast(TaskSchedule, rule)  # their readers check them


def read_rule(given: Mapping[str, Any]) -> tuple[Rule, Overlap, Missed]:
    """Checks the options of a schedule, without `immediately`."""
    rule = {option: value for option, value in given.items() if option not in ("overlap", "missed")}
    overlap = one_of(*OVERLAPS)("overlap", given.get("overlap", "allow"))
    missed = one_of(*MISSED)("missed", given.get("missed", "once"))
    return rule_of(**rule), overlap, missed


class Tick(msgspec.Struct, frozen=True):
    """A tick in the history of a schedule."""

    at: datetime
    """The instant it stands for."""
    fired_at: datetime
    """When a worker saw that it was due."""
    job: str | None
    """The id of the job that it made; or, if it was skipped, of the one because of which."""
    skipped: str | None = None
    """Why it made no job."""


class Schedule(msgspec.Struct, frozen=True):
    """A schedule at the moment of reading. `queue.schedules` has the calls that change it."""

    queue: str
    id: str
    name: str
    """The name of the jobs that it makes."""
    data: Json
    rule: Rule
    overlap: Overlap
    missed: Missed
    paused: bool
    next_at: datetime | None
    """Its next tick; None if it is paused or has ended."""
    fired: int
    """Number of ticks so far."""
    created_at: datetime
    history: tuple[Tick, ...]
    """Its last ticks, the newest last."""
    description: str
    """Its rule in plain words."""
    version: int

    def upcoming(self, count: int = 5, *, after: datetime | None = None) -> list[datetime]:
        """Its next ticks, also if it is paused; fewer if it ends before.

        Without `after` they begin with `next_at`, or, if that is None, after the present time of this machine.
        """
        number = whole("count", count, 1, MOST_UPCOMING)
        if after is not None:
            return moments(self.rule, instant_of(after, "after"), number, self.fired)
        if self.next_at is None:
            return moments(self.rule, instant_of(datetime.now(UTC)), number, self.fired)
        return moments(self.rule, instant_of(self.next_at) - 1, number, self.fired)

    def as_dict(self) -> dict[str, Any]:
        """The fields by name, as JSON has them: times are RFC 3339 texts. For the answers of web frameworks."""
        fields: dict[str, Any] = msgspec.to_builtins(self)
        return fields


def moments(rule: Rule, after: Instant, count: int, fired: int = 0) -> list[datetime]:
    """The next ticks of a rule, in its own time zone."""
    return [_local(instant, rule.tz) for instant in rule.upcoming(after, count, fired)]


def schedule_of(queue: str, stored: StoredSchedule) -> Schedule:
    """Raises `msgspec.MsgspecError` if the stored text cannot be read."""
    state = msgspec.json.decode(stored.value, type=ScheduleState)
    rule, template = state.rule, state.template
    return Schedule(
        queue=queue,
        id=stored.id,
        name=template.name,
        data=decode(template.data),
        rule=rule,
        overlap=state.overlap,
        missed=state.missed,
        paused=state.is_paused,
        next_at=None if stored.next_at is None else _local(stored.next_at, rule.tz),
        fired=state.fired,
        created_at=_local(state.created_at, "UTC"),
        history=tuple(_tick(record) for record in state.history),
        description=rule.explain(),
        version=stored.version,
    )


def _tick(record: TickRecord) -> Tick:
    return Tick(_local(record.at, "UTC"), _local(record.fired_at, "UTC"), record.job, record.skipped)


def _local(instant: Instant, tz: str) -> datetime:
    """In the zone, or in UTC on a machine that does not know it."""
    moment = moment_of(instant)
    try:
        return moment.astimezone(zone_of(tz))
    except ZoneInfoNotFoundError:
        return moment
