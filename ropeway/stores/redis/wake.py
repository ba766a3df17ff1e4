"""Wakes: scripts publish them, and one connection of each handle hears them for all its listeners.

A wake that was published while nobody heard, because a subscription was on its way or the connection had broken, is
made good for: whoever listens is woken as soon as the subscription stands.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

from ...errors import StoreClosed, StoreError
from ...store.values import ClaimRequest, Served
from .connection import FIRST_PAUSE, Find, open_link
from .link import Link

LONGEST_PAUSE: Final = 2.0
FIRST_PATIENCE: Final = 1.0
WATCH: Final = 5.0
"""Seconds of silence after which the server is asked whether it is still there, and has as many to answer."""


class Ear:
    """Subscribes to what the listeners of one handle want to hear, and keeps the connection alive."""

    def __init__(self, find: Find) -> None:
        self._find = find
        self._listeners: dict[str, set[RedisListener]] = {}
        self._link: Link | None = None
        self._task: asyncio.Task[None] | None = None
        self._heard_at = 0.0

    def add(self, listener: RedisListener) -> None:
        for channel in listener.channels:
            listeners = self._listeners.setdefault(channel, set())
            if self._link is not None:
                # Also where others listen already: the answer wakes the new one.
                self._link.tell("SUBSCRIBE", channel)
            listeners.add(listener)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run(), name="ropeway-redis-ear")

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
                link = await open_link(await self._find(), self._hear)
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
        """Returns when the link has ended; ends one whose server went silent."""
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


class RedisListener:
    """Remembers one wake until it is waited for, so that none is missed between looking and waiting."""

    def __init__(self, ear: Callable[[], Ear], channels: Sequence[str], usable: Callable[[], None], url: str) -> None:
        self.channels: Final = list(dict.fromkeys(channels))
        self._ear_here = ear
        self._ear: Ear | None = None
        self._usable = usable
        self._url = url
        self._pid = os.getpid()
        self._is_open = True
        self._is_woken = False
        self._heard = asyncio.Event()
        self._was_patient = False
        self._waiters: set[asyncio.Future[bool]] = set()
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            # Made before the loop runs: the first wait begins to listen, and is woken when it does.
            return
        self._add()

    async def wait(self, timeout: float | None = None) -> bool:
        """After `close` it raises `StoreClosed`; a wait that is under way then answers True."""
        await self._hearing()
        if self._take():
            return True
        waiter: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        try:
            async with asyncio.timeout(timeout):
                await waiter
        except TimeoutError:
            pass
        finally:
            self._waiters.discard(waiter)
        # Of several waiters one takes the wake, but all of them heard it.
        return self._take() or (waiter.done() and not waiter.cancelled() and waiter.result())

    async def _hearing(self) -> None:
        """Lets the subscription come to stand first, once: whoever asks in a hurry would wait without hearing."""
        self._usable()
        if not self._is_open or self._pid != os.getpid():
            raise StoreClosed(self._url, "this listener was closed, or made before a fork: listen again")
        self._add()
        if not self._was_patient:
            self._was_patient = True
            with suppress(TimeoutError):
                async with asyncio.timeout(FIRST_PATIENCE):
                    await self._heard.wait()

    async def claim(self, request: ClaimRequest, timeout: float | None = None) -> Served | None:
        """Only waits; see `ClaimingListener`."""
        await self.wait(timeout)
        return None

    def interrupt(self) -> None:
        self._resolve(woken=False)

    def hear(self, channel: str, message: bytes) -> None:
        self.wake()

    def wake(self) -> None:
        self._is_woken = True
        self._heard.set()
        self._resolve(woken=True)

    def close(self) -> None:
        """In a forked child it only looks closed: its subscription and whoever waits are the parent's."""
        if self._is_open:
            self._is_open = False
            if self._pid != os.getpid():
                return
            self._heard.set()
            if self._ear is not None:
                self._ear.remove(self)
            self._resolve(woken=True)

    def _add(self) -> None:
        if self._ear is None:
            self._ear = self._ear_here()
            self._ear.add(self)

    def _resolve(self, *, woken: bool) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(woken)

    def _take(self) -> bool:
        taken, self._is_woken = self._is_woken, False
        return taken
