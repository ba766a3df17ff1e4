"""Charts: from numbers to the coordinates of an SVG, whose colours are in the style sheet."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple

from ...job.instants import Instant, moment_of
from .formats import duration, number
from .summaries import Bucket

WIDTH: Final = 600
HEIGHT: Final = 120


class Bar(NamedTuple):
    x: float
    width: float
    parts: tuple[tuple[str, float, float], ...]
    """Class, top and height of each."""
    title: str


class Line(NamedTuple):
    name: str
    points: str


class Chart(NamedTuple):
    title: str
    summary: str
    """The same in words, for those who do not see it."""
    bars: tuple[Bar, ...]
    lines: tuple[Line, ...]
    top: str
    """The label of the highest value."""
    legend: tuple[tuple[str, str], ...]
    """Class and text."""
    begin: datetime
    end: datetime
    is_empty: bool


def throughput(buckets: Sequence[Bucket]) -> Chart:
    """Ended jobs: completed ones, with failed ones on top."""
    most = max((each.completed + each.failed for each in buckets), default=0)
    width = WIDTH / max(1, len(buckets))
    bars = []
    for index, each in enumerate(buckets):
        good, bad = _scaled(each.completed, most), _scaled(each.failed, most)
        parts = (("completed", HEIGHT - good, good), ("failed", HEIGHT - good - bad, bad))
        title = f"{_clock(each.at)}: {number(each.completed)} completed, {number(each.failed)} failed"
        shown = tuple((kind, round(y, 1), round(height, 1)) for kind, y, height in parts if height)
        bars.append(Bar(round(index * width + 0.5, 2), round(width - 1, 2), shown, title))
    done, failed = sum(each.completed for each in buckets), sum(each.failed for each in buckets)
    return Chart(
        "Throughput",
        f"{number(done)} completed and {number(failed)} failed",
        tuple(bars),
        (),
        number(most),
        (("completed", f"{number(done)} completed"), ("failed", f"{number(failed)} failed")),
        *_ends(buckets),
        is_empty=most == 0,
    )


def waits(buckets: Sequence[Bucket]) -> Chart:
    """How long jobs waited: half of them and 95 percent of them waited no longer."""
    half = [each.timings.wait.quantile(0.5) for each in buckets]
    most_of_them = [each.timings.wait.quantile(0.95) for each in buckets]
    highest = max((value for value in most_of_them if value is not None), default=0)
    latest = next((value for value in reversed(most_of_them) if value is not None), None)
    told = "no job started" if latest is None else f"95% of the latest started within {duration(latest)}"
    return Chart(
        "Wait time",
        told,
        (),
        (Line("p95", _points(most_of_them, highest)), Line("p50", _points(half, highest))),
        duration(highest) if highest else "",
        (("p50", "half within"), ("p95", "95% within")),
        *_ends(buckets),
        is_empty=latest is None,
    )


def _points(values: Sequence[int | None], highest: int) -> str:
    """A path that steps from bar to bar; where nothing was measured it has a gap."""
    width = WIDTH / max(1, len(values))
    parts: list[str] = []
    for index, value in enumerate(values):
        if value is None:
            continue
        y = HEIGHT - _scaled(value, highest, HEIGHT - 2)
        joins = index > 0 and values[index - 1] is not None
        parts.append(f"{'L' if joins else 'M'}{index * width:.1f} {y:.1f}H{(index + 1) * width:.1f}")
    return "".join(parts)


def _scaled(value: float, most: float, height: float = HEIGHT) -> float:
    # Something is always seen, however small it is beside the largest.
    return max(1.5, value / most * height) if value and most else 0.0


def _clock(at: Instant) -> str:
    return f"{moment_of(at):%H:%M} UTC"


def _ends(buckets: Sequence[Bucket]) -> tuple[datetime, datetime]:
    step = buckets[1].at - buckets[0].at
    return moment_of(buckets[0].at), moment_of(buckets[-1].at + step)
