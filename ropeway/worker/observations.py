"""How long the jobs of a worker waited and ran, until that is written to the store."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from ..job.options import readable_options
from ..job.record import JobRecord
from ..job.timings import BOUNDS, Timings

QUICK: Final = BOUNDS[0]
"""Most durations are in the first bucket, in milliseconds: these cost an addition only."""


class Observations:
    """Timings by queue. The loop adds to them, and the maintenance thread takes them away."""

    def __init__(self) -> None:
        self._timings: defaultdict[str, Timings] = defaultdict(Timings)

    def claimed(self, queue: str, records: Iterable[JobRecord]) -> None:
        """Notes how long jobs have waited for their first attempt."""
        wait, quick, total = self._timings[queue].wait, 0, 0
        for record in records:
            if record.attempts_started != 1 or record.children or record.started_at is None:
                continue
            waited = record.started_at - record.created_at
            if record.options != "{}":
                delay = readable_options(record.options).delay
                if delay is None:
                    continue
                waited -= delay
            if waited <= QUICK:
                quick += 1
                total += max(0, waited)
            else:
                wait.observe(waited)
        wait.counts[0] += quick
        wait.total += total

    def ran(self, queue: str, seconds: float) -> None:
        """Notes an attempt that took so many seconds."""
        run, took = self._timings[queue].run, seconds * 1000
        if took <= QUICK:
            run.counts[0] += 1
            run.total += took
        else:
            run.observe(took)

    def take(self, queue: str) -> Timings | None:
        found = self._timings.pop(queue, None)
        return found if found is not None and (found.wait.number or found.run.number) else None
