"""Times at which a worker was asked to stop."""

from __future__ import annotations

import time


class StopRequests:
    """Requests to stop, recorded on the thread where they arrive, because the loop may be blocked.

    A signal is recorded when Python receives it, and again as a call when the loop handles it.
    """

    def __init__(self) -> None:
        self._signals: list[float] = []
        self._calls: list[float] = []

    @property
    def are_there(self) -> bool:
        return bool(self._signals or self._calls)

    def note_signal(self) -> None:
        self._signals.append(time.monotonic())

    def note_call(self) -> None:
        self._calls.append(time.monotonic())

    def ends_at(self, wait: float, hurried: float) -> float | None:
        """Deadline: `wait` seconds after the first request, or `hurried` after the second. None if not requested."""
        asked = [times for times in (self._signals, self._calls) if times]
        ends = [times[0] + wait for times in asked] + [times[1] + hurried for times in asked if len(times) > 1]
        return min(ends, default=None)
