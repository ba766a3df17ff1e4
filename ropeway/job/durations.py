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
_PART: Final = re.compile(r"\s*(?:,|and\b)?\s*(\d+(?:\.\d+)?)\s*([a-z]+)", re.IGNORECASE)
_ISO: Final = re.compile(
    r"P(?:(\d+(?:\.\d+)?)W)?(?:(\d+(?:\.\d+)?)D)?"
    r"(?:T(?=\d)(?:(\d+(?:\.\d+)?)H)?(?:(\d+(?:\.\d+)?)M)?(?:(\d+(?:\.\d+)?)S)?)?",
    re.IGNORECASE,
)
_ISO_UNITS: Final = (604_800_000, 86_400_000, 3_600_000, 60_000, 1_000)
_HELP: Final = 'is not a duration: use seconds, a timedelta, or text such as "5 minutes", "1h30m" or "PT5M"'


def milliseconds(given: Duration) -> Milliseconds:
    """Rounds to whole milliseconds. A negative duration counts as none at all."""
    if isinstance(given, bool):
        raise InvalidDuration(given, _HELP)
    length: int | float
    if isinstance(given, str):
        length = _read(given)
    elif isinstance(given, timedelta):
        length = given / timedelta(milliseconds=1)
    elif isinstance(given, int | float):
        length = given * 1000
    else:
        raise InvalidDuration(given, _HELP)
    # Whole numbers are always finite, and may be too large to be asked.
    if isinstance(length, float) and not math.isfinite(length):
        raise InvalidDuration(given, "is not a finite duration")
    if length > LONGEST:
        raise InvalidDuration(given, "is longer than 100 years")
    return max(0, round(length))


def _read(text: str) -> float:
    text = text.strip().removeprefix("in ")
    if len(text) > 100:
        raise InvalidDuration(text, _HELP)
    iso = _ISO.fullmatch(text)
    if iso and any(iso.groups()):
        return sum(float(n) * unit for n, unit in zip(iso.groups(), _ISO_UNITS, strict=True) if n)
    length, at = 0.0, 0
    while at < len(text):
        part = _PART.match(text, at)
        if part is None or part[2].lower() not in _UNITS:
            raise InvalidDuration(text, _HELP)
        length += float(part[1]) * _UNITS[part[2].lower()]
        at = part.end()
    if at == 0:
        raise InvalidDuration(text, _HELP)
    return length
