"""Short texts for cells: numbers, times, and foreign text made safe for a terminal."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from ...job.codec import Json
from ...job.instants import Instant
from ..escaping import printable

_DAY: Final = 86_400
_PLAINER: Final = str.maketrans({"–": "-", "…": "..", "·": "-", "×": "x"})
_UNITS: Final = ((_DAY, "d", 3_600, "h"), (3_600, "h", 60, "m"), (60, "m", 1, "s"))


def number(value: float) -> str:
    """At most six characters: `98,765`, `123k`, `1.23M`."""
    if value < 100_000:
        return f"{value:,.0f}"
    for size, unit in ((10**9, "G"), (10**6, "M")):
        if value >= size:
            return f"{value / size:.3g}{unit}" if value < 999.5 * size else f"{value / size:.0f}{unit}"
    return f"{value / 1000:.0f}k" if value < 999_500 else "1M"


def rate(value: float) -> str:
    """A number, or a dash for zero, so that other values stand out."""
    if value == 0:
        return "–"
    return f"{value:.1f}" if value < 100 else number(value)


def seconds(value: float | None) -> str:
    """At most six characters: `12ms`, `3.4s`, `2m05s`, `3h20m`, `12d04h`."""
    if value is None:
        return "–"
    if value < 0.9995:
        return f"{value * 1000:.0f}ms"
    if value < 59.95:
        return f"{value:.1f}s"
    whole = round(value)
    for size, unit, small_size, small_unit in _UNITS:
        if whole >= size:
            big, rest = divmod(whole, size)
            return f"{big}{unit}{rest // small_size:02}{small_unit}" if big < 100 else f"{big}{unit}"
    return f"{whole}s"


def time_of_day(instant: Instant) -> str:
    return datetime.fromtimestamp(instant / 1000).astimezone().strftime("%H:%M:%S")


def short_worker(name: str) -> str:
    """`host:pid` for a worker without a name."""
    host, *rest = name.split(":")
    return f"{host}:{rest[0]}" if len(rest) == 2 and rest[0].isdecimal() else name


def percent(progress: Json) -> float | None:
    """Progress in percent, if it is a number from 0 to 100."""
    if isinstance(progress, bool) or not isinstance(progress, int | float) or not 0 <= progress <= 100:
        return None
    return float(progress)


def one_line(text: str, encoding: str = "utf-8") -> str:
    """Safe text on one line, without characters that the encoding lacks."""
    safe = printable(" ".join(text.split()))
    if encoding == "ascii":
        safe = safe.translate(_PLAINER)
    return safe.encode(encoding, "replace").decode(encoding)
