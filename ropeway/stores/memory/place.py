"""What the handles of one memory store share, and where shared ones are found by name."""

from __future__ import annotations

import os
import secrets
from itertools import count
from threading import Lock, RLock
from typing import Final
from weakref import WeakSet, WeakValueDictionary

from .book import Book
from .clock import Clock
from .door import Door
from .records import Records
from .revoked import RevokedLocks
from .stream import Stream
from .wake import Hub

NAMES_KEPT: Final = 10_000
"""Of queues that are gone."""


class Place:
    """One lock guards it all: every verb is one short step under it."""

    def __init__(self) -> None:
        # One that its holder may take again: the garbage collector can end an abandoned `Listener.wait` anywhere.
        self.lock = RLock()
        self.clock = Clock()
        self.sequence = count(1)
        self.books: dict[str, Book] = {}
        self.records = Records()
        self.hub = Hub(self.lock)
        self.doors: WeakSet[Door] = WeakSet()
        # Cursors outlive stores: the epoch shows that one comes from elsewhere.
        self._epoch = secrets.token_hex(4)
        self._entries_before: dict[str, int] = {}
        self.revoked = RevokedLocks(self._epoch)

    def book(self, queue: str) -> Book:
        """The book of a queue; a blank one, not kept, if nothing is known of it."""
        return self.books.get(queue) or Book(queue, Stream(self._epoch, self._entries_before.get(queue, 0)))

    def forget(self, book: Book) -> None:
        """Entries of a later queue of this name go on after the numbers of this one."""
        self._entries_before[book.name] = book.stream.last
        if len(self._entries_before) > NAMES_KEPT:
            del self._entries_before[next(iter(self._entries_before))]
        self.books.pop(book.name, None)


class _Shared:
    """Places by name. One lives as long as a handle on it is open: the last `close` ends it.

    A handle that nobody refers to any more counts as closed, as soon as the garbage collector has noticed.
    """

    def __init__(self) -> None:
        self.begin_anew()

    def begin_anew(self) -> None:
        self._lock = Lock()
        self._places: WeakValueDictionary[str, Place] = WeakValueDictionary()

    def has(self, name: str) -> bool:
        with self._lock:
            return name in self._places

    def enter(self, name: str, door: Door) -> Place:
        with self._lock:
            place = self._places.get(name)
            if place is None:
                place = self._places[name] = Place()
            place.doors.add(door)
            return place

    def leave(self, name: str, place: Place, door: Door) -> None:
        with self._lock:
            place.doors.discard(door)
            if not place.doors and self._places.get(name) is place:
                del self._places[name]


SHARED: Final = _Shared()

# A forked child must neither find its parent's jobs nor wait for a lock that a thread of the parent held.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=SHARED.begin_anew)
