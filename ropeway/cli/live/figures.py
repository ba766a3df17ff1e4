"""Derived figures: pure functions, and small sliding windows."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from ...job.instants import Instant
from ...store.values import Metric

MINUTE: Final = 60_000


class Moves(NamedTuple):
    """Number of jobs per kind of move, or per second."""

    added: float = 0
    completed: float = 0
    failed: float = 0

    def plus(self, other: Moves) -> Moves:
        return Moves(*(one + another for one, another in zip(self, other, strict=True)))

    def per_second(self, milliseconds: int) -> Moves:
        return Moves(*(number * 1000 / max(1, milliseconds) for number in self))


class Tally:
    """Counts moves from the store's metrics, which are exact: none is missed or counted twice."""

    def __init__(self) -> None:
        self._known: dict[Instant, Metric] = {}

    def since(self, now: Instant) -> Instant:
        """The minute from which metrics must be read next."""
        return min(self._known, default=now - now % MINUTE)

    def feed(self, metrics: Iterable[Metric], now: Instant) -> Moves:
        """The moves since the last call."""
        total = Moves()
        for metric in metrics:
            total = total.plus(_increase(self._known.get(metric.minute), metric))
            self._known[metric.minute] = metric
        # The previous minute may still grow, by a step whose clock was read just before its end.
        oldest = now - now % MINUTE - MINUTE
        self._known = {minute: metric for minute, metric in self._known.items() if minute >= oldest}
        return total


def _increase(before: Metric | None, after: Metric) -> Moves:
    old = before or Metric(after.minute)
    if old.added > after.added or old.completed > after.completed or old.failed > after.failed:
        # The queue was obliterated meanwhile, and used again.
        old = Metric(after.minute)
    return Moves(after.added - old.added, after.completed - old.completed, after.failed - old.failed)


class Meter:
    """Rates over the last seconds, smoothed by a sliding window."""

    def __init__(self, window: int = 5_000) -> None:
        self._window = window
        self._points: deque[tuple[Instant, Moves]] = deque()

    def feed(self, now: Instant, moves: Moves) -> None:
        """Adds the moves since the previous call; of the first call only the instant is used."""
        self._points.append((now, moves))
        while len(self._points) > 2 and self._points[1][0] <= now - self._window:
            self._points.popleft()

    def rates(self) -> Moves | None:
        """Moves per second; None before the second call."""
        if len(self._points) < 2:
            return None
        total = Moves()
        for _, moves in list(self._points)[1:]:
            total = total.plus(moves)
        return total.per_second(self._points[-1][0] - self._points[0][0])


def rates_of_last_minute(metrics: Sequence[Metric], now: Instant) -> Moves:
    """Rates for the first moment, before anything was measured: from this minute and the previous one."""
    begin = now - now % MINUTE - MINUTE
    total = Moves()
    for metric in metrics:
        if metric.minute >= begin:
            total = total.plus(Moves(metric.added, metric.completed, metric.failed))
    return total.per_second(now - begin)


def completed_by_minute(metrics: Sequence[Metric], now: Instant, minutes: int) -> list[float]:
    """Completed jobs per second in each of the last minutes, without the current one."""
    numbers = {metric.minute: metric.completed for metric in metrics}
    this = now - now % MINUTE
    return [numbers.get(this - back * MINUTE, 0) / 60 for back in range(minutes, 0, -1)]


def percentile(values: Sequence[float], share: float) -> float | None:
    """The percentile: the smallest value that at least this share of them does not exceed."""
    if not values:
        return None
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def heights(values: Sequence[float], width: int, steps: int) -> list[int]:
    """The last `width` values as whole steps of the highest; a non-zero value is at least one step high."""
    shown = values[-width:] if width > 0 else []
    top = max(shown, default=0)
    return [0 if value <= 0 else max(1, round(value / top * steps)) for value in shown]
