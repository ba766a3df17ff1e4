"""Signals whose handler raises, at whatever moment of a call: for programs that are not to be hurt by them."""

from __future__ import annotations

import random
import signal
from collections.abc import Callable
from types import FrameType


class Storm:
    """Interrupts calls with an error of `kind`; of two `strikes` the second hits what the first one left."""

    def __init__(self, kind: type[BaseException], every: float = 0.0003, strikes: int = 1) -> None:
        self.error: type[BaseException] = type("Stop", (kind,), {})
        self._every = every
        self._strikes = strikes
        self._left = 0

    def interrupt(self, times: int, act: Callable[[], object]) -> None:
        """Calls `act` until so many of the calls did not come to their end."""
        signal.signal(signal.SIGALRM, self._strike)
        signal.setitimer(signal.ITIMER_REAL, 0.001, self._every)
        while times:
            try:
                try:
                    self._left = self._strikes
                    act()
                finally:
                    # Inside: the last of two strikes may come just here.
                    self._left = 0
            except self.error:
                times -= 1
        signal.setitimer(signal.ITIMER_REAL, 0)
        # A last one may be on its way to another thread, and nobody would expect it.
        signal.signal(signal.SIGALRM, signal.SIG_IGN)

    def _strike(self, _number: int, _frame: FrameType | None) -> None:
        if self._left:
            self._left -= 1
            if self._left:
                signal.setitimer(signal.ITIMER_REAL, random.uniform(0.00001, 0.0006), self._every)
            raise self.error
