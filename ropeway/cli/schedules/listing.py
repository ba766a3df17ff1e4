"""`ropeway schedules list`."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import click

from ...client.found_schedules import FoundSchedule, schedules_of
from ...job.instants import Instant, moment_of
from ...store.contract import Store
from ..helping import examples
from ..jobs.choosing import queues_of
from ..lists import show_list
from ..options import json_option, queue_option, url_option
from ..stores import on_store
from ..tables import Column, Wrapped
from ..text import age
from .words import local_time

_NO_RUN: Final = "-"


@click.command(
    "list",
    epilog=examples(
        "ropeway schedules list",
        "ropeway schedules list --queue reports",
        "ropeway schedules list --json | jq '.schedules[] | select(.state == \"late\")'",
    ),
)
@queue_option
@url_option
@json_option
@on_store()
async def list_schedules(store: Store, queue: str | None, as_json: bool) -> None:
    """List schedules with their next and last runs, in local time."""
    listed = [each for one in await queues_of(store, queue) async for each in schedules_of(one)]
    now = await store.clock()
    document = {"schedules": [each.summary(now) for each in listed]} if as_json else None
    with_queue = queue is None
    rows = [_row(each, now, with_queue=with_queue) for each in listed]
    show_list(_columns(with_queue=with_queue), rows, "No schedules yet.", document)


def _columns(*, with_queue: bool) -> list[Column]:
    return [
        Column("id", is_whole=True),
        *([Column("queue", 50)] if with_queue else []),
        Column("job"),
        Column("next run"),
        Column("in", 50, is_number=True),
        Column("last", 60, is_number=True),
        Column("when", is_note=True),
    ]


def _row(each: FoundSchedule, now: Instant, *, with_queue: bool) -> list[str]:
    moment = moment_of(now)
    return [
        each.id,
        *([each.queue.name] if with_queue else []),
        "" if each.schedule is None else each.schedule.name,
        *_next(each, now, moment),
        _last(each, moment),
        Wrapped(each.damage if each.schedule is None else each.schedule.description),
    ]


def _next(each: FoundSchedule, now: Instant, moment: datetime) -> tuple[str, str]:
    standing = each.standing(now)
    if each.next_at is None or standing == "damaged":
        return standing, ""
    if standing == "late":
        return local_time(each.next_at, moment), f"late {age(each.next_at, moment)}"
    # Due just now: a worker will see it in a moment.
    return local_time(each.next_at, moment), age(max(each.next_at, moment), moment).removeprefix("+")


def _last(each: FoundSchedule, moment: datetime) -> str:
    if each.schedule is None or not each.schedule.history:
        return _NO_RUN
    last = each.schedule.history[-1]
    return f"{age(last.at, moment)} ago" if last.skipped is None else "skipped"
