"""Where claims start to scan the waiting jobs.

Claimed jobs leave dead index entries at the head of the line. The server removes them as it goes, but not while an
older transaction is open that may still see them: then every claim passes all of them.

    waiting    | dead dead dead dead dead ... dead | job job job ...
               ^ from the very start               ^ behind the last job that was claimed

A handle that notices it starts behind the job it claimed last, and scans from the very start once a second only. A job
that was inserted before that position, such as one of a higher priority, then waits up to a second. Not so parents that
are released, which are always in front of their children: the settle that releases them claims from the very start, and
the notification says `ahead`, so that the next claim of any handle that listens does so too.
"""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec
from msgspec.structs import replace

from ...job.instants import Instant
from ...store.commands import Claim
from ...store.values import Claimed
from .parameters import NULL, Parameter, number

MANY: Final = 5_000
"""Dead entries that a claim passes before it is worth starting behind them."""
PAUSE: Final = 1.0
"""Seconds between two scans from the very start."""
LATE: Final = 1_000
"""Milliseconds by which a delayed job may be committed after it was due."""


class ScanStart(msgspec.Struct):
    """What one handle knows of the claims of some names in one queue."""

    last: tuple[int, int] | None = None
    """Priority and order of the last job that was claimed."""
    scanned_at: Instant = 0
    """The server's time of the last scan from the very start."""
    scanned: float = 0.0
    """The loop's time of it."""
    is_needed: bool = False
    is_reset: bool = False
    """Whether the next scan must be one from the very start."""


class ScanStarts:
    """Those of one handle."""

    def __init__(self) -> None:
        # By names, too: claims of other names have their jobs at other positions.
        self._starts: dict[tuple[str, tuple[str, ...] | None], ScanStart] = {}

    def parameters(self, request: Claim | None) -> tuple[Parameter, ...]:
        """The priority, order and due time to start from; nulls for the very start."""
        start = None if request is None else self._starts.get((request.queue, request.names))
        if start is None:
            return NULL, NULL, NULL
        is_reset, start.is_reset = start.is_reset, False
        if is_reset or not start.is_needed or asyncio.get_running_loop().time() - start.scanned >= PAUSE:
            return NULL, NULL, NULL
        due = number(max(0, start.scanned_at - LATE))
        return (NULL, NULL, due) if start.last is None else (number(start.last[0]), number(start.last[1]), due)

    def reset(self, queue: str) -> None:
        """Lets the next claims from a queue scan from the very start: jobs may have come into line ahead of others.

        Also if a claim is under way, which may have been too early to see them.
        """
        for (of, _), start in [*self._starts.items()]:
            if of == queue:
                start.is_reset = True

    def note(self, request: Claim, claimed: Claimed, passed: int | None, *, was_whole: bool) -> Claimed:
        """Records a claim, and how many dead entries it passed. `was_whole`: it scanned from the very start.

        If it did not and found too few, the answer says that a claim after the pause may find more.
        """
        start = self._starts.setdefault((request.queue, request.names), ScanStart())
        if claimed.jobs:
            start.last = claimed.jobs[-1].priority, claimed.jobs[-1].order
        if was_whole and passed is not None:
            start.is_needed = passed > MANY
            start.scanned, start.scanned_at = asyncio.get_running_loop().time(), claimed.now
        if was_whole or len(claimed.jobs) >= request.limit:
            return claimed
        whole_at = claimed.now + int(PAUSE * 1000)
        return replace(claimed, again_at=whole_at if claimed.again_at is None else min(whole_at, claimed.again_at))
