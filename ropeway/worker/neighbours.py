"""Mutual exclusion among the workers of one process: one at a time may keep the others from starting handlers.

Workers may run on several event loops, in several threads. A worker that wants to be alone asks each of the others, on
its own loop, to stand back. It is alone when all of them do and none of their handlers runs any more.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final, Protocol


class Neighbour(Protocol):
    """One worker of the process."""

    loop: asyncio.AbstractEventLoop
    stands_back_for: object
    """The request because of which it starts no handlers now; None if there is none."""

    @property
    def is_quiet(self) -> bool:
        """True if none of its handlers runs in this process. Called from any thread."""
        ...

    def stand_back(self, request: object) -> None: ...

    def check(self) -> None:
        """Called on its loop when `acquire` may have another answer."""
        ...


class Neighbours:
    """The registry of workers, and which of them holds the exclusive right."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._all: dict[Neighbour, int] = {}
        """Workers with their process id: a forked child inherits the list, but runs none of the workers."""
        self._holder: Neighbour | None = None
        self._request = object()
        """Identity of the current request: an answer to an earlier one, which may come late, does not count."""

    def join(self, newcomer: Neighbour) -> None:
        with self._lock:
            self._all[newcomer] = os.getpid()
            if self._holder is not None and self._is_beside(newcomer, self._holder):
                newcomer.stand_back(self._request)

    def leave(self, leaver: Neighbour) -> None:
        self.release(leaver)
        with self._lock:
            del self._all[leaver]
        self.notify_holder()

    def acquire(self, asker: Neighbour) -> bool:
        """True if no other worker runs a handler or will start one before `release`. Retry when `check` is called."""
        with self._lock:
            if self._holder is not asker and (self._holder is None or not self._is_beside(asker, self._holder)):
                self._holder, self._request = asker, object()
                for other in self._others(asker):
                    _call(other, partial(other.stand_back, self._request))
            if self._holder is not asker:
                return False
            others = self._others(asker)
            return all(other.stands_back_for is self._request and other.is_quiet for other in others)

    def release(self, asker: Neighbour) -> None:
        with self._lock:
            if self._holder is asker:
                self._holder = None
                for other in self._others(asker):
                    _call(other, partial(other.stand_back, None))

    def notify_holder(self) -> None:
        """Lets the worker that wants to be alone check again."""
        if (holder := self._holder) is not None:
            _call(holder, holder.check)

    def _others(self, one: Neighbour) -> list[Neighbour]:
        return [other for other in self._all if self._is_beside(one, other)]

    def _is_beside(self, one: Neighbour, other: Neighbour) -> bool:
        """True for another worker of this process whose loop runs: one whose loop was stopped runs no handlers."""
        return other is not one and self._all.get(other) == os.getpid() and other.loop.is_running()


def _call(neighbour: Neighbour, what: Callable[[], object]) -> None:
    with suppress(RuntimeError):  # Its loop may just have ended.
        neighbour.loop.call_soon_threadsafe(what)


NEIGHBOURS: Final = Neighbours()
"""The registry of this process."""
