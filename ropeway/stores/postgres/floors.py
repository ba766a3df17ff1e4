"""From where claims look for jobs.

Jobs that were claimed leave dead entries at the head of the line, which the server removes as it goes; but none that a
transaction older than they may still see. While such a transaction stays open, every claim has to pass all of them. A
handle that notices it begins where it took its last jobs, and looks from the very start once in a while only: a job
that came to stand before that place then waits that long.
"""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec

from ...job.instants import Instant
from ...store.commands import Claim
from ...store.values import Claimed
from .parameters import NULL, Parameter, number

MANY: Final = 5_000
"""Entries that a claim passes in vain before it is worth it."""
PAUSE: Final = 1.0
"""Seconds between two looks from the very start."""
LATE: Final = 1_000
"""Milliseconds by which a delayed job may be committed after it was due."""


class Floor(msgspec.Struct):
    last: tuple[int, int] | None = None
    """Priority and order of the last job that was taken."""
    looked_at: Instant = 0
    """The server's instant when all was looked at, and when that was here."""
    looked: float = 0.0
    is_needed: bool = False


class Floors:
    def __init__(self) -> None:
        # Whoever takes other names has other jobs behind the place where it took its last.
        self._floors: dict[tuple[str, tuple[str, ...] | None], Floor] = {}

    def parameters(self, request: Claim | None) -> tuple[Parameter, ...]:
        floor = None if request is None else self._floors.get((request.queue, request.names))
        if floor is None or not floor.is_needed or asyncio.get_running_loop().time() - floor.looked >= PAUSE:
            return NULL, NULL, NULL
        due = number(max(0, floor.looked_at - LATE))
        return (NULL, NULL, due) if floor.last is None else (number(floor.last[0]), number(floor.last[1]), due)

    def note(self, request: Claim, claimed: Claimed, passed: int | None, *, was_whole: bool) -> None:
        """Takes what a claim gave, and how many entries it passed in vain; `was_whole`: from the very start."""
        floor = self._floors.setdefault((request.queue, request.names), Floor())
        if claimed.jobs:
            floor.last = claimed.jobs[-1].priority, claimed.jobs[-1].order
        if was_whole and passed is not None:
            floor.is_needed = passed > MANY
            floor.looked, floor.looked_at = asyncio.get_running_loop().time(), claimed.now
