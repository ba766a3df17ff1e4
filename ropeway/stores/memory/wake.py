"""Wake-ups: sent from any thread to listeners on any event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from threading import RLock

from ...errors import StoreClosed
from ...store.commands import Claim
from ...store.values import Claimed, Topic
from .handle_guard import HandleGuard


class Hub:
    """The registry of listeners by topic and queue. The caller holds the store's lock."""

    __slots__ = ("_listeners", "lock")

    def __init__(self, lock: RLock) -> None:
        self.lock = lock
        self._listeners: dict[tuple[Topic, str], set[MemoryListener]] = {}

    def add(self, listener: MemoryListener) -> None:
        for channel in listener.channels:
            self._listeners.setdefault(channel, set()).add(listener)

    def remove(self, listener: MemoryListener) -> None:
        for channel in listener.channels:
            listeners = self._listeners.get(channel, set())
            listeners.discard(listener)
            if not listeners:
                self._listeners.pop(channel, None)

    def wake(self, channels: Iterable[tuple[Topic, str]]) -> None:
        for channel in channels:
            # A copy: the garbage collector may end an abandoned wait in this thread during the iteration.
            for listener in [*self._listeners.get(channel, ())]:
                listener.wake()


class MemoryListener:
    """Remembers one wake until the next `wait`, so that none is missed between a claim and the wait.

    Close it or the store handle that created it: until then the store references it.
    """

    def __init__(self, hub: Hub, guard: HandleGuard, topic: Topic, queues: Sequence[str]) -> None:
        self.channels: list[tuple[Topic, str]] = [(topic, queue) for queue in dict.fromkeys(queues)]
        self._hub = hub
        self._guard = guard
        self._is_open = True
        self._is_woken = False
        self._waiters: set[asyncio.Future[bool]] = set()
        with hub.lock:
            hub.add(self)

    @property
    def is_closed(self) -> bool:
        return not self._is_open

    async def wait(self, timeout: float | None = None) -> bool:
        """Raises `StoreClosed` after `close`; a wait in progress then answers True."""
        self._guard.check()
        if not self._is_open:
            raise StoreClosed(self._guard.url, "this listener was closed: listen again")
        waiter: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        with self._hub.lock:
            if self._take():
                return True
            self._waiters.add(waiter)
        try:
            async with asyncio.timeout(timeout):
                await waiter
        except TimeoutError:
            pass
        finally:
            with self._hub.lock:
                self._waiters.discard(waiter)
        with self._hub.lock:
            # One of several waiters consumes the wake, but all of them answer True.
            return self._take() or (not waiter.cancelled() and waiter.result())

    async def hold(self, _: Claim, timeout: float) -> Claimed | None:
        """Only waits: here a separate claim costs hardly more than one that the store would serve by itself."""
        await self.wait(timeout)
        return None

    def interrupt(self) -> None:
        with self._hub.lock:
            for waiter in self._waiters:
                _resolve(waiter, woken=False)

    def wake(self) -> None:
        """Wakes all waiters, or the next one. The caller holds the store's lock."""
        if not self._is_woken:
            self._is_woken = True
            for waiter in [*self._waiters]:
                _ring(waiter)

    def close(self) -> None:
        if self._is_open and not self._guard.is_inherited:
            self._is_open = False
            with self._hub.lock:
                self._hub.remove(self)
                self.wake()

    def _take(self) -> bool:
        taken, self._is_woken = self._is_woken, False
        return taken


def _ring(waiter: asyncio.Future[bool]) -> None:
    # The loop of a thread that ended may be closed; its waiter is gone with it.
    with suppress(RuntimeError):
        waiter.get_loop().call_soon_threadsafe(_resolve, waiter)


def _resolve(waiter: asyncio.Future[bool], *, woken: bool = True) -> None:
    if not waiter.done():
        waiter.set_result(woken)
