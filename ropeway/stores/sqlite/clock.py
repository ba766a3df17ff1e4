"""A clock that never runs backwards."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from ...job.instants import Instant


class Clock:
    """The wall clock, or where the last reading would be by now, whichever is later.

    `saw` tells it of instants that others stored, so that it goes on from those.
    """

    def __init__(self, wall: Callable[[], int] = time.time_ns, steady: Callable[[], int] = time.monotonic_ns) -> None:
        self._wall, self._steady = wall, steady
        self._latest = 0
        self._latest_steady = steady()
        self._lock = threading.Lock()

    def read(self) -> Instant:
        with self._lock:
            steady = self._steady()
            self._latest = max(self._wall(), self._latest + steady - self._latest_steady)
            self._latest_steady = steady
            return self._latest // 1_000_000

    def saw(self, stored: Instant) -> None:
        with self._lock:
            steady = self._steady()
            self._latest = max(stored * 1_000_000, self._latest + steady - self._latest_steady)
            self._latest_steady = steady
