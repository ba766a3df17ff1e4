"""The store's clock: the wall's time, that never runs backwards."""

from __future__ import annotations

import time
from collections.abc import Callable

from ...job.instants import Instant


class Clock:
    """Follows the wall clock forward, over a suspended machine too, and goes on steadily when that is set back."""

    __slots__ = ("_monotonic", "_offset", "_wall")

    def __init__(
        self, wall: Callable[[], int] = time.time_ns, monotonic: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self._wall, self._monotonic = wall, monotonic
        self._offset = wall() - monotonic()

    def now(self) -> Instant:
        # The wall is read first: a pause between the two readings can then not push the clock ahead.
        wall, steady = self._wall(), self._monotonic()
        self._offset = max(self._offset, wall - steady)
        return (steady + self._offset) // 1_000_000
