"""State shared by all handles of one memory store, and the registry of named stores."""

from __future__ import annotations

import os
import secrets
from itertools import count
from threading import Lock, RLock
from typing import Final
from weakref import WeakSet, WeakValueDictionary

from .clock import Clock
from .handle_guard import HandleGuard
from .queue_data import QueueData
from .records import Records
from .revoked import RevokedLocks
from .stream import Stream
from .wake import Hub

NAMES_KEPT: Final = 10_000
"""Number of obliterated queues whose last event number is remembered."""


class SharedState:
    """One lock guards all of it: every command is one short step under it."""

    def __init__(self) -> None:
        # Reentrant, because the garbage collector can end an abandoned `Listener.wait` at any point.
        self.lock = RLock()
        self.clock = Clock()
        self.sequence = count(1)
        self.queues: dict[str, QueueData] = {}
        self.records = Records()
        self.hub = Hub(self.lock)
        self.guards: WeakSet[HandleGuard] = WeakSet()
        # Cursors outlive stores: the epoch reveals one that comes from another store.
        self._epoch = secrets.token_hex(4)
        self._entries_before: dict[str, int] = {}
        self.revoked = RevokedLocks(self._epoch)

    def queue(self, name: str) -> QueueData:
        """The data of a queue; an empty one, not stored, if the queue does not exist."""
        return self.queues.get(name) or QueueData(name, Stream(self._epoch, self._entries_before.get(name, 0)))

    def forget(self, queue: QueueData) -> None:
        """Removes a queue. A later queue of this name continues its event numbers."""
        self._entries_before[queue.name] = queue.stream.last
        if len(self._entries_before) > NAMES_KEPT:
            del self._entries_before[next(iter(self._entries_before))]
        self.queues.pop(queue.name, None)


class _Registry:
    """Named stores. A store exists as long as one of its handles is open.

    A handle that is garbage-collected counts as closed.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self._lock = Lock()
        self._states: WeakValueDictionary[str, SharedState] = WeakValueDictionary()

    def has(self, name: str) -> bool:
        with self._lock:
            return name in self._states

    def attach(self, name: str, guard: HandleGuard) -> SharedState:
        with self._lock:
            shared = self._states.get(name)
            if shared is None:
                shared = self._states[name] = SharedState()
            shared.guards.add(guard)
            return shared

    def detach(self, name: str, shared: SharedState, guard: HandleGuard) -> None:
        with self._lock:
            shared.guards.discard(guard)
            if not shared.guards and self._states.get(name) is shared:
                del self._states[name]


REGISTRY: Final = _Registry()

# A forked child must neither find its parent's jobs nor wait for a lock that a thread of the parent held.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=REGISTRY.reset)
