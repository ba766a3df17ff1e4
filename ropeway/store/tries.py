"""Schedule of tries to reach a server: quickly again at first, and never for longer than a producer waits."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from typing import Final

FIRST_PAUSE: Final = 0.02
LONGEST_PAUSE: Final = 0.5
CONNECTING: Final = 2.3
"""Seconds in which a server that is there takes a connection."""
PATIENCE: Final = 3.0
"""Seconds in which a server that worked before may come back before anybody hears of it."""
LAST_TRY: Final = 1.7
"""Seconds that are left to the last try to connect: a producer whose call was cut off shall know within 5."""


class Tries:
    """Schedule of retries that may begin within `seconds`."""

    def __init__(self, seconds: float) -> None:
        self._since = time.monotonic()
        self._seconds = seconds

    def pauses(self) -> Iterator[float]:
        """Seconds to wait before each retry; the last one begins when the time is over."""
        pause = FIRST_PAUSE
        while (left := self._since + self._seconds - time.monotonic()) > 0:
            yield min(left, pause * random.uniform(0.5, 1.0))  # noqa: S311 - spreads load
            pause = min(pause * 2, LONGEST_PAUSE)

    def patience(self) -> float:
        """Seconds that a try has to connect if it begins now."""
        end = self._since + max(CONNECTING, self._seconds + LAST_TRY)
        return min(CONNECTING, end - time.monotonic())
