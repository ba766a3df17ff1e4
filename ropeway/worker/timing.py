"""Duration of an attempt, for log lines."""

from __future__ import annotations

from time import monotonic

import msgspec

from ..job.codec import Json


class Timing(msgspec.Struct):
    """Measured by the monotonic clock: a fake loop's clock stands still while a handler computes."""

    began: float = 0.0
    took: float | None = None
    """Seconds; None before it has ended."""
    logged: float = 0.0
    """When its progress was last logged; `progress` is the value logged then."""
    progress: Json = None
    revoked_for: str | None = None
    """The reason of its cancellation, once that was read; empty if there is none."""

    @property
    def so_far(self) -> float:
        """Seconds since it began."""
        return monotonic() - self.began

    def should_log(self, progress: Json, every: float) -> bool:
        """True if the progress has changed and was not logged for `every` seconds; it then counts as logged."""
        now = monotonic()
        if now - max(self.began, self.logged) < every or progress == self.progress:
            return False
        self.logged, self.progress = now, progress
        return True


def in_words(seconds: float) -> str:
    """`0.04 ms`, `12 ms`, `3.25 s`, `2 min 5 s`, `3 h 20 min`."""
    if seconds < 0.0095:
        return f"{_short(seconds * 1000)} ms"
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 59.995:
        return f"{_short(seconds)} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def _short(number: float) -> str:
    return f"{number:.2f}".rstrip("0").rstrip(".")
