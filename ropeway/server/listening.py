"""Listeners of remote callers, kept between their polls: a wake-up that comes in between is not missed."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final, TypeAlias

import msgspec

from ..store.contract import Listener, Store
from ..store.values import Topic
from .problems import Refused

KEPT: Final = 90.0
"""Seconds without a poll after which a listener is closed."""
MOST_LISTENERS: Final = 5_000
MOST_AT_ONCE: Final = 1_000
"""Listeners of one poll."""
_BITS: Final = 48
"""So that no language takes a number of wake-ups for a fraction."""


What: TypeAlias = tuple[Topic, tuple[str, ...], str | None]


class Listening:
    """A listener with the number of wake-ups that it has seen."""

    def __init__(self, listener: Listener, what: What) -> None:
        self.listener: Final = listener
        self.what: Final = what
        """Topic, queues and worker."""
        self.wakes = secrets.randbits(_BITS)
        """Begins with a number that no caller knows: what happened before may have been missed."""
        self.polled = time.monotonic()
        self.polls = 0
        """Polls that are waiting now."""


class Listenings:
    def __init__(self) -> None:
        self._all: OrderedDict[tuple[str, str], Listening] = OrderedDict()

    def get(self, store: Store, who: str, id: str, what: What) -> Listening:
        """The caller's listener of that id; a new one if there is none, or one to something else."""
        self._close_old()
        key = who, id
        found = self._all.get(key)
        if found is not None and found.what != what:
            self.drop(who, id)
            found = None
        if found is None:
            if len(self._all) >= MOST_LISTENERS:
                raise Refused(503, "overloaded", "there are too many listeners", headers={"retry-after": "5"})
            found = self._all[key] = Listening(store.listen(*what), what)
        found.polled = time.monotonic()
        self._all.move_to_end(key)
        return found

    def drop(self, who: str, id: str) -> None:
        if (found := self._all.pop((who, id), None)) is not None:
            found.listener.close()

    def close(self) -> None:
        for who, id in [*self._all]:
            self.drop(who, id)

    def _close_old(self) -> None:
        oldest = time.monotonic() - KEPT
        for key, listening in [*self._all.items()]:
            if listening.polled > oldest:
                break
            if not listening.polls:
                self.drop(*key)


async def any_wake(listenings: Sequence[Listening], seconds: float, end: asyncio.Event) -> None:
    """Waits until one of the listeners is woken, and counts what came; at most until `end`."""
    waits = {asyncio.ensure_future(each.listener.wait(seconds)): each for each in listenings}
    tasks = [*waits, asyncio.ensure_future(end.wait())]
    for each in listenings:
        each.polls += 1
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        for task, each in waits.items():
            each.polls -= 1
            # A wait that was cancelled has used up no wake-up.
            each.wakes += not task.cancelled() and task.exception() is None and task.result()


class Wanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A listener: it is made by its first poll, and closed some time after the last."""

    id: str
    """Of your choice, for one listener."""
    topic: Topic
    queues: tuple[str, ...]
    after: int = 0
    """Its number in the answer before: if that is another now, the poll is answered at once."""
    worker: str | None = None
    """Of `jobs` of one queue: waiting claims of this worker wait by this listener, and use up what they see of it."""


class Listen(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A poll of some listeners."""

    listeners: tuple[Wanted, ...] = ()
    wait: float = 0.0
    """Seconds to wait for a wake-up of one of them."""
    close: tuple[str, ...] = ()
    """The ids of listeners that are no longer needed."""


class Heard(msgspec.Struct, frozen=True):
    wakes: dict[str, int]
    """By listener. Look again if its number is not the one that you had."""
