"""Listeners of remote callers, kept between their polls: a wake-up that comes in between is not missed."""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import Final

import msgspec

from ..store.contract import Listener, Store
from ..store.values import Topic
from .problems import Refused

KEPT: Final = 90.0
"""Seconds without a poll after which a listener is closed."""
MOST_LISTENERS: Final = 5_000


class Listening:
    """A listener with the number of wake-ups that it has seen."""

    def __init__(self, listener: Listener, what: tuple[Topic, tuple[str, ...]]) -> None:
        self.listener: Final = listener
        self.what: Final = what
        self.wakes = 1
        """The first is its beginning: what happened before may have been missed."""
        self.polled = time.monotonic()
        self.polls = 0
        """Polls that are waiting now."""


class Listenings:
    def __init__(self) -> None:
        self._all: OrderedDict[tuple[str, str], Listening] = OrderedDict()

    def get(self, store: Store, who: str, id: str, topic: Topic, queues: tuple[str, ...]) -> Listening:
        """The caller's listener of that id; a new one if there is none, or one to something else."""
        self._close_old()
        key = who, id
        what: tuple[Topic, tuple[str, ...]] = topic, queues
        found = self._all.get(key)
        if found is not None and found.what != what:
            self.drop(who, id)
            found = None
        if found is None:
            if len(self._all) >= MOST_LISTENERS:
                raise Refused(503, "overloaded", "there are too many listeners", headers={"retry-after": "5"})
            found = self._all[key] = Listening(store.listen(topic, queues), what)
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


class Listen(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A poll of a listener: it is made by the first one, and closed some time after the last."""

    id: str
    """Of your choice, for one listener."""
    topic: Topic
    queues: tuple[str, ...]
    after: int = 0
    """The `wakes` of the answer before: if there were more since, this is answered at once."""
    wait: float = 0.0
    """Seconds to wait for a wake-up."""
    close: bool = False
    """Ends the listener instead."""


class Heard(msgspec.Struct, frozen=True):
    wakes: int
    """Look again if it is not the number that you had. It begins anew when the server has forgotten the listener."""
