"""Times at which a worker was asked to stop."""

from __future__ import annotations

import time
from typing import Literal, TypeAlias

Way: TypeAlias = Literal["pipe", "handler", "call"]
"""How a request arrives: a signal by up to three ways, in this order, and last as a call of `stop` by the loop."""


class StopRequests:
    """Requests to stop, recorded on the thread where they arrive, because the loop may be blocked.

    Each way counts for itself, so that a signal that arrives by several is not taken for several requests.
    """

    def __init__(self) -> None:
        self._times: dict[Way, list[float]] = {"pipe": [], "handler": [], "call": []}

    @property
    def are_there(self) -> bool:
        return any(self._times.values())

    def note(self, way: Way) -> None:
        self._times[way].append(time.monotonic())

    def ends_at(self, wait: float, hurried: float) -> float | None:
        """Deadline: `wait` seconds after the first request, or `hurried` after the second. None if not requested."""
        asked = [times for times in self._times.values() if times]
        ends = [times[0] + wait for times in asked] + [times[1] + hurried for times in asked if len(times) > 1]
        return min(ends, default=None)
