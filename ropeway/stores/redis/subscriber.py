"""Subscriptions: scripts publish wakes, and one connection of each handle receives them for all its listeners.

A wake that is published while a subscription is not yet confirmed, or the connection is broken, is lost. So listeners
are woken when the subscription is confirmed.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Any, Final

from ...errors import StoreError
from ...store.listening import EarListener, HearsForAll
from ...store.tries import FIRST_PAUSE
from .connection import Opens
from .link import Link

LONGEST_PAUSE: Final = 2.0
WATCH: Final = 5.0
"""Seconds of silence after which the server is asked whether it is still there, and has as many to answer."""


class Subscriber:
    """Subscribes to the channels of a handle's listeners, and keeps the connection alive."""

    def __init__(self, opens: Opens) -> None:
        self._opens = opens
        self._listeners: dict[str, set[RedisListener]] = {}
        self._link: Link | None = None
        self._task: asyncio.Task[None] | None = None
        self._heard_at = 0.0

    def add(self, listener: RedisListener, channels: Sequence[str] | None = None) -> None:
        """Subscribes a listener to all of its channels, or to some."""
        for channel in listener.channels if channels is None else channels:
            listeners = self._listeners.setdefault(channel, set())
            if self._link is not None:
                # Also where others listen already: the answer wakes the new one.
                self._link.tell("SUBSCRIBE", channel)
            listeners.add(listener)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run(), name="ropeway-redis-subscriber")

    def remove(self, listener: RedisListener) -> None:
        for channel in listener.channels:
            listeners = self._listeners.get(channel, set())
            listeners.discard(listener)
            if not listeners and self._listeners.pop(channel, None) is not None and self._link is not None:
                self._link.tell("UNSUBSCRIBE", channel)

    async def close(self) -> None:
        for listener in {listener for listeners in self._listeners.values() for listener in listeners}:
            listener.close()
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        pause = FIRST_PAUSE
        while True:
            try:
                link = await self._opens(self._hear)
            except StoreError:
                # Whoever waits has a safety poll, which tells what is wrong.
                await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 - spreads load
                pause = min(pause * 2, LONGEST_PAUSE)
                continue
            pause = FIRST_PAUSE
            self._link = link
            try:
                for channel in self._listeners:
                    link.tell("SUBSCRIBE", channel)
                await self._watch(link)
            finally:
                self._link = None
                link.abort()
                await link.closed.wait()

    async def _watch(self, link: Link) -> None:
        """Waits until the link has ended, or its server does not answer."""
        loop = asyncio.get_running_loop()
        self._heard_at = loop.time()
        was_asked = False
        while not link.ended.is_set():
            try:
                async with asyncio.timeout(WATCH):
                    await link.ended.wait()
            except TimeoutError:
                if loop.time() - self._heard_at < WATCH:
                    was_asked = False
                elif was_asked:
                    return
                else:
                    was_asked = True
                    link.tell("PING")

    def _hear(self, said: Any) -> None:
        self._heard_at = asyncio.get_running_loop().time()
        if isinstance(said, list) and said[0] in (b"message", b"subscribe"):
            what, channel, message = said
            name = channel.decode()
            for listener in [*self._listeners.get(name, ())]:
                if what == b"message":
                    listener.hear(name, message)
                else:
                    listener.wake()


class RedisListener(EarListener[HearsForAll]):
    def __init__(
        self, subscriber: Callable[[], HearsForAll], channels: Sequence[str], usable: Callable[[], None], url: str
    ) -> None:
        self.channels: Final = list(dict.fromkeys(channels))
        super().__init__(subscriber, usable, url)

    def hear(self, channel: str, message: bytes) -> None:
        self.wake()
