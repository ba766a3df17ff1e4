"""Locks that were revoked while their jobs ran, because these were cancelled or removed."""

from __future__ import annotations

from collections import deque
from itertools import count
from typing import Final

from ...job.instants import Instant, Milliseconds
from ...store.values import Revoked, RevokedLock

KEPT: Final[Milliseconds] = 60_000


class RevokedLocks:
    """The revoked locks of all queues: kept apart from queue data, because workers read them after an obliterate."""

    __slots__ = ("_epoch", "_last", "_locks", "_numbers")

    def __init__(self, epoch: str) -> None:
        self._epoch = epoch
        self._locks: deque[tuple[int, Instant, str, RevokedLock]] = deque()
        self._numbers = count(1)
        self._last = 0

    def __len__(self) -> int:
        return len(self._locks)

    def append(self, queue: str, lock: RevokedLock, now: Instant) -> None:
        self.trim(now)
        self._last = next(self._numbers)
        self._locks.append((self._last, now, queue, lock))

    def trim(self, now: Instant) -> None:
        while self._locks and self._locks[0][1] < now - KEPT:
            self._locks.popleft()

    def read(self, queue: str, after: str | None) -> Revoked:
        cursor = f"{self._epoch}-{self._last}"
        if after is None:
            return Revoked([], cursor)
        epoch, _, number = after.partition("-")
        seen = int(number) if epoch == self._epoch and number.isascii() and number.isdecimal() else 0
        found: list[RevokedLock] = []
        for own, _, name, lock in reversed(self._locks):
            if own <= seen:
                break
            if name == queue:
                found.append(lock)
        return Revoked(found[::-1], cursor)
