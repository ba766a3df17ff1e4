"""`queue.add(..., repeat={...})`: schedules in the manner of other job queues."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

import msgspec

from ..errors import InvalidOption
from ..job.codec import Json
from ..job.instants import instant_of
from ..job.options import JobOptions
from ..job.schedules import tick_id
from ..showing import shown
from .handle import JobHandle
from .schedule import Schedule, ScheduleOptions, read_rule
from .schedules import job_options

if TYPE_CHECKING:
    from .queue import Queue


def _repeat_options(given: object) -> ScheduleOptions:
    """The options in `queue.add(..., repeat={...})`."""
    if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
        raise InvalidOption("repeat", f'cannot be {shown(given)}: use {{"cron": "0 9 * * *", "tz": "Europe/Berlin"}}')
    unknown = given.keys() - ScheduleOptions.__optional_keys__
    if unknown:
        known = ", ".join(sorted(ScheduleOptions.__optional_keys__))
        raise InvalidOption("repeat", f"has the unknown option {shown(min(unknown))}; there are {known}")
    return cast(ScheduleOptions, dict(given))  # rule_of checks the values


async def add_repeating(
    queue: Queue, name: str, data: Json, repeat: ScheduleOptions, options: JobOptions, tx: object
) -> JobHandle:
    """`queue.add(..., repeat={...})`: a schedule, and the handle of its first job to come."""
    if tx is not None:
        raise InvalidOption("tx", "is for jobs: a schedule is no part of your transaction")
    when = _repeat_options(repeat)
    id = options.get("id")
    rest = job_options({option: value for option, value in options.items() if option != "id"})
    schedule = await queue.schedules.put(_repeat_id(name, when) if id is None else id, name, data, **when, **rest)
    return JobHandle(queue, _first_job(schedule), name, data)


def _first_job(schedule: Schedule) -> str:
    """The job that `immediately` made, or the one of its next tick; if there is none, of its last."""
    if schedule.version == 1 and schedule.history:
        [first] = schedule.history
        assert first.job is not None
        return first.job
    if upcoming := schedule.upcoming(1):
        return tick_id(schedule.id, instant_of(upcoming[0]))
    return next(tick.job for tick in reversed(schedule.history) if tick.job is not None)


def _repeat_id(name: str, when: ScheduleOptions) -> str:
    """The same for the same name and rule, however the rule is written."""
    rule, _, _ = read_rule({option: value for option, value in when.items() if option != "immediately"})
    digest = hashlib.sha256(msgspec.json.encode([str(name), rule])).hexdigest()[:12]
    readable = re.sub(r"[^A-Za-z0-9._-]", "-", str(name))[:100]
    return f"{readable}:{digest}"
