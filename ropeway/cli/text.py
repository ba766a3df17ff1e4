"""Values, times and numbers as text or JSON."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import msgspec

from ..job.instants import Instant, moment_of
from ..showing import length
from .escaping import one_line


def as_json(value: Any) -> str:
    """JSON on one line. A lone surrogate, as in some file names, is written as its escape."""
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(value), separators=(",", ":"))


def shown(value: Any) -> str:
    """A value of a job: JSON, on one line."""
    return one_line(as_json(value))


def clock_time(moment: datetime | None) -> str:
    """A time in the local time zone."""
    return "" if moment is None else moment.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def instant_time(instant: Instant) -> str:
    moment = moment_of(instant)
    return f"{clock_time(moment)}.{instant % 1000:03}"


def iso(instant: Instant | None) -> str | None:
    """A time as RFC 3339 in UTC, for JSON."""
    moment = moment_of(instant)
    return None if moment is None else moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def age(moment: datetime | None, now: datetime | None = None) -> str:
    """`5s`, `3m`, `2h`, `4d`; with a sign for the future: `+5s`."""
    if moment is None:
        return ""
    seconds = ((now or datetime.now(UTC)) - moment).total_seconds()
    return length(seconds) if seconds >= 0 else f"+{length(-seconds)}"
