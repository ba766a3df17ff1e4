"""Durations as people write them: 90, 1.5, timedelta(minutes=5), "5 minutes", "1h30m", "PT5M"."""

from __future__ import annotations

import math
import re
from datetime import timedelta
from typing import Final, TypeAlias

from ..errors import InvalidDuration
from .instants import Milliseconds

Duration: TypeAlias = int | float | timedelta | str
"""Seconds as a number, a timedelta, or text with units."""

LONGEST: Final[Milliseconds] = 100 * 366 * 86_400_000

_UNITS: Final[dict[str, int]] = {
    unit: milliseconds
    for milliseconds, units in {
        1: "ms millisecond milliseconds",
        1_000: "s sec secs second seconds",
        60_000: "m min mins minute minutes",
        3_600_000: "h hr hrs hour hours",
        86_400_000: "d day days",
        604_800_000: "w wk wks week weeks",
    }.items()
    for unit in units.split()
}
_PART: Final = re.compile(r"\s*(?:,|and\b)?\s*(\d+(?:\.\d+)?)\s*([a-z]+)", re.ASCII)
_ISO: Final = re.compile(
    r"p(?:(\d+(?:\.\d+)?)w)?(?:(\d+(?:\.\d+)?)d)?"
    r"(?:t(?=\d)(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?)?",
    re.ASCII,
)
_ISO_UNITS: Final = (604_800_000, 86_400_000, 3_600_000, 60_000, 1_000)
_HELP: Final = 'is not a duration: use seconds, a timedelta, or text such as "5 minutes", "1h30m" or "PT5M"'


def milliseconds(given: Duration, option: str | None = None) -> Milliseconds:
    """Rounds to whole milliseconds. Refuses negative durations; errors name the option, if given."""
    length = _finite(given, option)
    if length < 0:
        raise InvalidDuration(given, "is negative: a duration is 0 or more", option)
    return _bounded(given, length, option)


def milliseconds_left(given: Duration, option: str | None = None) -> Milliseconds:
    """As `milliseconds`, but 0 if it is negative: of a moment that has passed, as in `when - now`."""
    return _bounded(given, max(_finite(given, option), 0), option)


def _finite(given: Duration, option: str | None) -> int | float:
    length = _length(given, option)
    # An int is always finite, and may be too large for `isfinite`.
    if isinstance(length, float) and not math.isfinite(length):
        raise InvalidDuration(given, "is not a finite duration", option)
    return length


def _bounded(given: Duration, length: float, option: str | None) -> Milliseconds:
    if length > LONGEST:
        raise InvalidDuration(given, "is longer than 100 years", option)
    return round(length)


def _length(given: Duration, option: str | None) -> int | float:
    if isinstance(given, timedelta):
        return given / timedelta(milliseconds=1)
    if isinstance(given, int | float) and not isinstance(given, bool):
        return given * 1000
    length = _read(given) if isinstance(given, str) else None
    if length is None:
        raise InvalidDuration(given, _HELP, option)
    return length


def _read(given: str) -> float | None:
    """None if it is not a duration, or is ambiguous because it names a unit twice."""
    # Spaces of any kind become plain ones; digits and letters of other scripts are refused.
    text = " ".join(given.split())
    if len(text) > 100 or not text.isascii():
        return None
    text = text.lower().removeprefix("in ")
    iso = _ISO.fullmatch(text)
    if iso and any(iso.groups()):
        return sum(float(n) * unit for n, unit in zip(iso.groups(), _ISO_UNITS, strict=True) if n)
    lengths: dict[int, float] = {}
    at = 0
    while at < len(text):
        part = _PART.match(text, at)
        unit = _UNITS.get(part[2]) if part else None
        if part is None or unit is None or unit in lengths:
            return None
        lengths[unit] = float(part[1]) * unit
        at = part.end()
    return sum(lengths.values()) if lengths else None
