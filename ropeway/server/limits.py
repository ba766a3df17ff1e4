"""`Limits`: what a broker allows, and the rules of its heartbeats."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from ..errors import InvalidOption
from ..job.durations import LONGEST
from ..job.instants import Milliseconds
from ..job.numbers import whole
from ..showing import shown

MOST_SECONDS: Final = LONGEST / 1000


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits and defaults of a broker; durations are seconds."""

    heartbeat: float = 5.0
    """How often workers are told to send a heartbeat."""
    timeout: float = 30.0
    """How long a job stays with a worker that sends none."""
    attempts: int = 3
    """Attempts of jobs that are submitted without a number."""
    drop_exhausted: bool = False
    """If true, submitted jobs whose attempts are used up are removed, instead of kept as failed."""
    wait: float = 60.0
    """Longest wait of a long poll."""
    body: int = 16 * 1024 * 1024
    """Most bytes of a request's body."""
    body_seconds: float = 30.0
    """Longest time for a body to arrive."""
    header_seconds: float = 10.0
    """Longest time for the head of a request to arrive; of `ropeway serve`."""
    header_bytes: int = 32 * 1024
    """Most bytes of the head of a request; of `ropeway serve`."""
    requests: int = 256
    """Most requests at once; reading ones are refused at half of it, adds and claims at three quarters."""
    rate: float | None = None
    """Most requests a second of one token, in the long run; None sets no limit."""
    waiting: int = 2_000
    """Most requests that wait, such as long polls; they do not count as above."""
    connections: int = 4_000
    """Most connections at once; of `ropeway serve`."""

    def __post_init__(self) -> None:
        for name in ("attempts", "body", "header_bytes", "requests", "waiting", "connections"):
            whole(name, getattr(self, name), 1)
        for name in ("heartbeat", "timeout", "wait", "body_seconds", "header_seconds"):
            _positive(name, getattr(self, name))
        if self.rate is not None:
            _positive("rate", self.rate)
        if self.heartbeat >= self.timeout:
            raise InvalidOption("heartbeat", f"cannot be {self.heartbeat:g} s: it must be below the timeout")

    @property
    def lock(self) -> Milliseconds:
        return round(self.timeout * 1000)


def _positive(name: str, given: Any) -> None:
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given <= MOST_SECONDS:
        raise InvalidOption(name, f"cannot be {shown(given)}: use seconds, more than 0")


DEFAULTS: Final = Limits()
