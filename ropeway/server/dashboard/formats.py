"""Values as people read them. What these give is text, which the templates escape."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any, Final

from ...job.instants import Instant, Milliseconds, moment_of

LARGEST_SHOWN: Final = 200_000
"""Characters of a value that a page shows; the API has all of it."""
_UNITS: Final = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000))


def number(value: float) -> str:
    """Exact, with separators: 1,234,567."""
    return f"{value:,}"


def duration(value: Milliseconds | None) -> str:
    """The two largest units: 2 h 5 min."""
    if value is None:
        return ""
    if value < 1_000:
        return f"{value:.0f} ms"
    if value < 10_000 and value % 1000:
        return f"{value / 1000:.1f} s"
    parts: list[str] = []
    left = int(value)
    for unit, size in _UNITS:
        count, left = divmod(left, size)
        if count or parts:
            parts.append(f"{count} {unit}" if count else "")
        if len(parts) == 2:
            break
    return " ".join(filter(None, parts))


def moment(value: datetime | Instant | None) -> datetime | None:
    return moment_of(value) if isinstance(value, int) else value


def exact(value: datetime | Instant) -> str:
    """To the millisecond, in UTC."""
    found = moment(value)
    assert found is not None
    return f"{found.astimezone(UTC):%Y-%m-%d %H:%M:%S}.{found.microsecond // 1000:03d} UTC"


def iso(value: datetime | Instant) -> str:
    found = moment(value)
    assert found is not None
    return found.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def short(value: datetime | Instant) -> str:
    """For readers without scripts; the others see their own zone."""
    found = moment(value)
    assert found is not None
    return f"{found.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def pretty(value: Any) -> str:
    """Readable JSON. Wide numbers stay exact, because no browser reads them."""
    text = json.dumps(value, indent=2, ensure_ascii=False, default=str)
    return text if len(text) <= LARGEST_SHOWN else f"{text[:LARGEST_SHOWN]}\n… {len(text) - LARGEST_SHOWN:,} more"


def compact(value: Any, limit: int = 120) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
