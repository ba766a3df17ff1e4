"""One reader of a queue's event stream for all subscribers on an event loop, however many there are.

    store ── read_events ──> EventHub ──put──> Subscription (bounded buffer) ──next──> one viewer
                                      ──put──> Subscription ...

The reader runs while there are subscribers. A subscriber that does not keep up loses what is in its buffer, and gets
one `gap` event in its place; the others notice nothing.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import aclosing
from typing import Final, TypeAlias

from ..job.events import Event
from ..store.contract import Store
from .adds import own_copy
from .events import newest_event, read_events

BUFFERED: Final = 256
"""Most events that wait for a subscriber."""

Wanted: TypeAlias = Callable[[Event], bool]


class Subscription:
    """Events since `start`, in order, in a bounded buffer."""

    def __init__(self, start: str, wanted: Wanted) -> None:
        self.start: Final = start
        """The position in the stream after which its events begin."""
        self._wanted = wanted
        self._events: deque[Event] = deque()
        self._arrived = asyncio.Event()
        self._last = start
        """The last event that was taken: after it comes the gap."""
        self._overflowed: Event | None = None
        self._error: Exception | None = None

    def put(self, event: Event) -> None:
        if not self._wanted(event):
            return
        if len(self._events) >= BUFFERED:
            self._events.clear()
            self._overflowed = Event(self._last, event.queue, "gap", None, event.at, {"after": self._last})
        self._events.append(event)
        self._arrived.set()

    def fail(self, error: Exception) -> None:
        self._error = error
        self._arrived.set()

    async def next(self, timeout: float) -> Event | None:
        """The next event, or None if there was none for `timeout` seconds."""
        if not self._arrived.is_set():
            try:
                async with asyncio.timeout(timeout):
                    await self._arrived.wait()
            except TimeoutError:
                return None
        return self._take()

    def _take(self) -> Event:
        gap, self._overflowed = self._overflowed, None
        if gap is not None:
            return gap
        if self._events:
            event = self._events.popleft()
            if not self._events and self._error is None:
                self._arrived.clear()
            self._last = event.id
            return event
        assert self._error is not None, "nothing else sets the event"
        raise own_copy(self._error)


class EventHub:
    """Reads a queue's events once for all of its subscriptions."""

    def __init__(self, store: Store, queue: str) -> None:
        self._store = store
        self._queue = queue
        self._subscriptions: set[Subscription] = set()
        self._reader: asyncio.Task[None] | None = None
        self._has_begun: asyncio.Future[None] | None = None
        self._error: Exception | None = None
        """By which the last reader failed."""
        self._position = ""
        """Up to where the reader has read."""

    async def subscribe(self, wanted: Wanted) -> Subscription:
        """Subscribes to what happens from now on, until `unsubscribe`."""
        try:
            await self._start_reading()
        except BaseException:
            await self._stop_if_unused()
            raise
        subscription = Subscription(self._position, wanted)
        self._subscriptions.add(subscription)
        return subscription

    async def unsubscribe(self, subscription: Subscription) -> None:
        self._subscriptions.discard(subscription)
        await self._stop_if_unused()

    async def _start_reading(self) -> None:
        """Starts the reader unless it runs, and waits until it knows where it begins."""
        while True:
            if self._reader is None:
                self._has_begun = asyncio.get_running_loop().create_future()
                self._reader = asyncio.create_task(self._read(self._has_begun))
            reader, begun = self._reader, self._has_begun
            assert begun is not None
            await asyncio.wait([begun, reader], return_when=asyncio.FIRST_COMPLETED)
            if reader is self._reader:
                return
            # Otherwise the last of the other subscribers has left meanwhile, and stopped the reader.
            if not reader.cancelled():
                assert self._error is not None, "it ends by nothing else"
                raise own_copy(self._error)

    async def _stop_if_unused(self) -> None:
        """Stops the reader when nobody is left, and waits until its listener is closed."""
        if not self._subscriptions and self._reader is not None:
            reader, self._reader = self._reader, None
            reader.cancel()
            await asyncio.wait([reader])

    async def _read(self, begun: asyncio.Future[None]) -> None:
        try:
            self._position = await newest_event(self._store, self._queue)
            begun.set_result(None)
            async with aclosing(read_events(self._store, self._queue, self._position, follow=True)) as events:
                async for event in events:
                    self._position = event.id
                    for subscription in self._subscriptions:
                        subscription.put(event)
        except Exception as error:  # noqa: BLE001 - it is raised in every subscriber; none may hang
            self._reader, self._error = None, error
            for subscription in self._subscriptions:
                subscription.fail(error)
