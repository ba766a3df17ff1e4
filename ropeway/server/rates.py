"""Rates of requests: each caller has a bucket of tokens that fills up as time passes."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from typing import Final

from .problems import Refused

MOST_CALLERS: Final = 10_000
BURST: Final = 2.0
"""How many seconds' worth of requests may come at once."""


class Rates:
    """Lets each caller send `rate` requests a second; None sets no limit."""

    def __init__(self, rate: float | None) -> None:
        self._rate = rate
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """By caller: when it was last counted, and what was left."""

    def check(self, who: str) -> None:
        if self._rate is None:
            return
        now, most = time.monotonic(), max(1.0, self._rate * BURST)
        before, left = self._buckets.get(who, (now, most))
        left = min(most, left + (now - before) * self._rate)
        if left < 1:
            pause = math.ceil((1 - left) / self._rate)
            detail = f"this token may send {self._rate:g} requests a second"
            raise Refused(429, "too-many-requests", detail, headers={"retry-after": str(pause)})
        self._buckets[who] = now, left - 1
        self._buckets.move_to_end(who)
        if len(self._buckets) > MOST_CALLERS:
            self._buckets.popitem(last=False)
