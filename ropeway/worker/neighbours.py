"""The workers of one process, of which one at a time may keep all others from starting handlers.

They may live on several event loops, in several threads. Whoever wants to be alone asks the others, each on its loop,
to stand back, and is alone when all of them do and have nothing left that runs.
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
    loop: asyncio.AbstractEventLoop
    stands_back_for: object
    """The request for which it starts no handler now; None if there is none."""

    @property
    def is_quiet(self) -> bool:
        """Whether no handler of it runs in this process. Asked from any thread."""
        ...

    def stand_back(self, request: object) -> None: ...

    def look(self) -> None:
        """Something that it may wait for has happened."""
        ...


class Neighbours:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._all: dict[Neighbour, int] = {}
        """Each with its process: a fork has the list of its parent, and none of its workers."""
        self._alone: Neighbour | None = None
        self._request = object()
        """What the one that wants to be alone asks the others for. They answer to each by itself, some of them late."""

    def join(self, newcomer: Neighbour) -> None:
        with self._lock:
            self._all[newcomer] = os.getpid()
            if self._alone is not None and self._is_beside(newcomer, self._alone):
                newcomer.stand_back(self._request)

    def leave(self, leaver: Neighbour) -> None:
        self.open(leaver)
        with self._lock:
            del self._all[leaver]
        self.tell()

    def close(self, asker: Neighbour) -> bool:
        """Whether no other worker runs a handler, or will before `open`. Ask again when `look` is called."""
        with self._lock:
            if self._alone is not asker and (self._alone is None or not self._is_beside(asker, self._alone)):
                self._alone, self._request = asker, object()
                for other in self._others(asker):
                    _call(other, partial(other.stand_back, self._request))
            if self._alone is not asker:
                return False
            others = self._others(asker)
            return all(other.stands_back_for is self._request and other.is_quiet for other in others)

    def open(self, asker: Neighbour) -> None:
        with self._lock:
            if self._alone is asker:
                self._alone = None
                for other in self._others(asker):
                    _call(other, partial(other.stand_back, None))

    def tell(self) -> None:
        """Lets the one that wants to be alone look again."""
        if (alone := self._alone) is not None:
            _call(alone, alone.look)

    def _others(self, one: Neighbour) -> list[Neighbour]:
        return [other for other in self._all if self._is_beside(one, other)]

    def _is_beside(self, one: Neighbour, other: Neighbour) -> bool:
        """A worker whose loop stopped without a word runs no handlers."""
        return other is not one and self._all.get(other) == os.getpid() and other.loop.is_running()


def _call(neighbour: Neighbour, what: Callable[[], object]) -> None:
    with suppress(RuntimeError):  # Its loop may just have ended.
        neighbour.loop.call_soon_threadsafe(what)


NEIGHBOURS: Final = Neighbours()
"""Of this process."""
