"""Back-pressure: how many requests are carried out at once, and which are refused first."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Literal, TypeAlias

from .problems import Refused

Class: TypeAlias = Literal["settle", "work", "add", "manage", "probe"]
"""`settle`: completions and heartbeats, which are refused last: a job would run again. `probe`: health, never."""

SHARE: Final[dict[Class, float]] = {"settle": 1.0, "work": 0.75, "add": 0.75, "manage": 0.5}
"""The part of all places that must be free of other requests for one of this class to be let in."""


PAUSE: Final = 1.0
"""Seconds before a refusal is sent: callers that ask again at once would otherwise take all the time there is."""


class Overloaded(Refused):
    """There are too many requests."""


class Admission:
    """Lets in at most `limit` requests at once; waiting ones, as long polls, count on their own."""

    def __init__(self, limit: int, waiting_limit: int) -> None:
        self._limits: Final = {name: max(1, int(limit * share)) for name, share in SHARE.items()}
        self._waiting_limit: Final = waiting_limit
        self.inside = 0
        self.waiting = 0
        self.refused = 0
        """Since the start."""
        self._paused = 0

    @contextmanager
    def enter(self, kind: Class) -> Iterator[None]:
        self.check(kind)
        self.inside += 1
        try:
            yield
        finally:
            self.inside -= 1

    def check(self, kind: Class, own: int = 0) -> None:
        """Refuses a request of this class if too many are inside; `own` is how many of these are itself."""
        if kind != "probe" and self.inside - own >= self._limits[kind]:
            raise self._refusal()

    @contextmanager
    def wait(self) -> Iterator[None]:
        """Gives the place back while the request waits."""
        self.check_waiting()
        self.inside -= 1
        try:
            with self.stream():
                yield
        finally:
            self.inside += 1

    def check_waiting(self) -> None:
        """Refuses a request that is about to wait if too many do."""
        if self.waiting >= self._waiting_limit:
            raise self._refusal()

    @contextmanager
    def stream(self) -> Iterator[None]:
        """Counts an answer that goes on among those that wait; it holds no place."""
        self.waiting += 1
        try:
            yield
        finally:
            self.waiting -= 1

    async def pause(self) -> None:
        """Waits before a refusal is sent, while not too many wait already. It holds no place, and no body."""
        if self._paused < self._waiting_limit:
            self._paused += 1
            try:
                await asyncio.sleep(PAUSE)
            finally:
                self._paused -= 1

    def _refusal(self) -> Refused:
        self.refused += 1
        return Overloaded(
            503, "overloaded", "the server has too many requests: try again later", headers={"retry-after": "1"}
        )
