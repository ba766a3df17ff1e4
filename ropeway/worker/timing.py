"""How long an attempt takes, for the lines of a log."""

from __future__ import annotations

from time import monotonic

import msgspec

from ..job.codec import Json


class Timing(msgspec.Struct):
    """By the machine's monotonic clock: that of an event loop may stand still while a handler computes."""

    began: float = 0.0
    took: float | None = None
    """Seconds, once it has ended."""
    logged: float = 0.0
    """When its progress was last logged, and what it was then."""
    progress: Json = None

    @property
    def so_far(self) -> float:
        """Seconds since it began."""
        return monotonic() - self.began

    def is_worth_a_word(self, progress: Json, every: float) -> bool:
        """Whether its progress has changed, and was not logged for so many seconds; it then counts as logged."""
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
