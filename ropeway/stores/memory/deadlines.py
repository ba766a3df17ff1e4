"""Jobs ordered by a deadline: the expiry of their lock, or the end of their retention."""

from __future__ import annotations

from collections.abc import Callable

from ...job.instants import LAST_INSTANT, Instant
from ...job.record import JobRecord
from .keys import Key, SortedKeys


class Deadlines:
    """An index by one instant of each job. Jobs without it, or with one that never comes, are not in it."""

    __slots__ = ("_instant", "keys")

    def __init__(self, instant: Callable[[JobRecord], Instant | None]) -> None:
        self.keys = SortedKeys()
        self._instant = instant

    def add(self, jobs: list[JobRecord]) -> None:
        self.keys.add(self._of(jobs))

    def remove(self, jobs: list[JobRecord]) -> None:
        self.keys.remove(self._of(jobs))

    def _of(self, jobs: list[JobRecord]) -> list[Key]:
        instants = map(self._instant, jobs)
        return [
            (instant, abs(job.order), job.id)
            for job, instant in zip(jobs, instants, strict=True)
            if instant is not None and instant < LAST_INSTANT
        ]
