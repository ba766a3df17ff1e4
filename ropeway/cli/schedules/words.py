"""Times of schedules in words."""

from __future__ import annotations

from datetime import datetime

from ...client.found_schedules import FoundSchedule, Standing
from ..text import age, clock_time


def local_time(moment: datetime, now: datetime) -> str:
    """`Nov 19 09:00` in the local time zone; with the year if that is another, with seconds if there are any."""
    local = moment.astimezone()
    day = f"{local:%b %d}" if local.year == now.astimezone().year else f"{local:%Y-%m-%d}"
    return f"{day} {local:%H:%M:%S}" if local.second else f"{day} {local:%H:%M}"


def distance(moment: datetime, now: datetime) -> str:
    """`in 3h`, or `3h ago`."""
    told = age(moment, now)
    return f"in {told[1:]}" if told.startswith("+") else f"{told} ago"


def next_run(located: FoundSchedule, standing: Standing, now: datetime) -> str:
    """When it fires next, or why it does not."""
    if located.next_at is None:
        return standing
    if standing == "late":
        return f"late: it was due at {clock_time(located.next_at)}, {distance(located.next_at, now)}"
    return f"{clock_time(located.next_at)}, {distance(located.next_at, now)}"
