"""Counts of a queue's moves per minute."""

from __future__ import annotations

from collections import Counter
from typing import Final

from ...job.instants import Instant, Milliseconds
from ...job.rules import METRICS_OF
from ...store.values import Metric

MINUTE: Final[Milliseconds] = 60_000
KEPT: Final[Milliseconds] = 14 * 24 * 60 * MINUTE


class Metrics:
    __slots__ = ("_minutes",)

    def __init__(self) -> None:
        self._minutes: dict[Instant, Counter[str]] = {}

    def count(self, move: str, jobs: int, now: Instant) -> None:
        """Adds nothing for notices and for moves that are not counted."""
        names = METRICS_OF.get(move, ())
        if not names:
            return
        minute = now - now % MINUTE
        counted = self._minutes.get(minute)
        if counted is None:
            self.trim(now)
            counted = self._minutes[minute] = Counter()
        for name in names:
            counted[name] += jobs

    def trim(self, now: Instant) -> None:
        for minute in [minute for minute in self._minutes if minute < now - KEPT]:
            del self._minutes[minute]

    def since(self, instant: Instant) -> list[Metric]:
        """The minute in which `instant` lies is part of it."""
        first = instant - instant % MINUTE
        return [Metric(minute, **counts) for minute, counts in sorted(self._minutes.items()) if minute >= first]
