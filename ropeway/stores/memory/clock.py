"""The store's clock: wall-clock time that never runs backwards."""

from __future__ import annotations

import time
from collections.abc import Callable

from ...job.instants import Instant


class Clock:
    """Follows the wall clock forward, also after a suspend, and continues steadily if that is set back."""

    __slots__ = ("_monotonic", "_offset", "_wall")

    def __init__(
        self, wall: Callable[[], int] = time.time_ns, monotonic: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self._wall, self._monotonic = wall, monotonic
        self._offset = wall() - monotonic()

    def now(self) -> Instant:
        # The wall clock is read first: a pause between the two readings then cannot push this clock ahead.
        wall, steady = self._wall(), self._monotonic()
        self._offset = max(self._offset, wall - steady)
        return (steady + self._offset) // 1_000_000
