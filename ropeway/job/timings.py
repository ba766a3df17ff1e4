"""How long jobs waited and ran, as histograms per minute."""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

import msgspec

from .instants import Milliseconds

BOUNDS: Final[tuple[Milliseconds, ...]] = (
    *(5, 10, 25, 50, 100, 250, 500),
    *(1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000, 1_800_000, 3_600_000),
)
"""The upper bounds of all buckets but the last, which has none."""


class Histogram(msgspec.Struct, array_like=True):
    """Counts of durations, by bucket."""

    counts: list[int] = msgspec.field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    total: float = 0
    """All durations together, in milliseconds."""

    def observe(self, duration: float) -> None:
        """`duration` is in milliseconds."""
        self.counts[bisect_left(BOUNDS, duration)] += 1
        self.total += duration

    def add(self, other: Histogram) -> None:
        for bucket, count in enumerate(other.counts):
            self.counts[bucket] += count
        self.total += other.total

    @property
    def number(self) -> int:
        """How many durations were observed."""
        return sum(self.counts)

    def quantile(self, share: float) -> Milliseconds | None:
        """The bound below which that share of the durations lies, or the largest bound; None without any."""
        wanted, seen = share * self.number, 0
        for bucket, count in enumerate(self.counts):
            seen += count
            if count and seen >= wanted:
                return BOUNDS[min(bucket, len(BOUNDS) - 1)]
        return None


class Timings(msgspec.Struct):
    """Of the jobs that started, or of the attempts that ended, in some time."""

    wait: Histogram = msgspec.field(default_factory=Histogram)
    """From the moment at which a job could be run to its first attempt; not of parents and of `delay=datetime`."""
    run: Histogram = msgspec.field(default_factory=Histogram)
    """Of each attempt."""

    def add(self, other: Timings) -> None:
        self.wait.add(other.wait)
        self.run.add(other.run)
