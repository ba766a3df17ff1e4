"""Listeners of network stores: all of a loop share one connection, the ear, which receives the wake-up messages."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Generic, Protocol, TypeVar

from ..errors import StoreClosed
from .commands import Claim
from .values import Claimed

FIRST_PATIENCE: Final = 1.0


class HearsForAll(Protocol):
    """The shared connection that receives wake-up messages and wakes listeners."""

    def add(self, listener: Any) -> None:
        """Subscribes for the listener, and wakes it once that is confirmed: earlier messages were missed."""
        ...

    def remove(self, listener: Any) -> None: ...


Ear = TypeVar("Ear", bound=HearsForAll)


class EarListener(Generic[Ear]):
    """Remembers one wake until the next `wait`, so that none is missed between a claim and the wait."""

    def __init__(self, ear: Callable[[], Ear], usable: Callable[[], None], url: str) -> None:
        """`ear` finds the running loop's ear; `usable` raises if the store handle was closed."""
        self._find_ear = ear
        self._ear: Ear | None = None
        self._usable = usable
        self._url = url
        self._pid = os.getpid()
        self._is_open = True
        self._is_woken = False
        self._heard = asyncio.Event()
        self._waited_for_server = False
        self._interrupts = 0
        self._waiters: set[asyncio.Future[bool]] = set()
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            # Created before the loop runs: the first wait subscribes, and is woken once that is confirmed.
            return
        self._add()

    @property
    def is_closed(self) -> bool:
        return not self._is_open

    async def wait(self, timeout: float | None = None) -> bool:
        """Raises `StoreClosed` after `close`; a wait in progress then answers True."""
        interrupts = self._interrupts
        await self._hearing()
        if not self._is_open:
            return True
        return self._take() or (interrupts == self._interrupts and await self._woken(timeout))

    async def hold(self, _: Claim, timeout: float) -> Claimed | None:
        """Only waits: the store does not serve the claim meanwhile."""
        await self.wait(timeout)
        return None

    def interrupt(self) -> None:
        # Counted, so that it also ends a `wait` that is still waiting for its subscription.
        self._interrupts += 1
        self._resolve(woken=False)

    def wake(self) -> None:
        self._is_woken = True
        self._heard.set()
        self._resolve(woken=True)

    def close(self) -> None:
        """Stops listening. In a forked child it only marks itself closed: connection and waiters are the parent's."""
        if self._is_open:
            self._is_open = False
            if self._pid != os.getpid():
                return
            self._heard.set()
            if self._ear is not None:
                self._ear.remove(self)
            self._resolve(woken=True)

    def _listening(self) -> Ear:
        self._usable()
        if not self._is_open or self._pid != os.getpid():
            raise StoreClosed(self._url, "this listener was closed, or made before a fork: listen again")
        return self._add()

    def _add(self) -> Ear:
        if self._ear is None:
            self._ear = self._find_ear()
            self._ear.add(self)
        return self._ear

    async def _hearing(self) -> None:
        """Waits, the first time, until the subscription is confirmed: a short `wait` would otherwise miss messages."""
        self._listening()
        if not self._waited_for_server:
            self._waited_for_server = True
            with suppress(TimeoutError):
                async with asyncio.timeout(FIRST_PATIENCE):
                    await self._heard.wait()

    async def _woken(self, timeout: float | None, *, in_the_end: bool = False) -> bool:
        """True if it was woken; `in_the_end` is the answer after the timeout."""
        waiter: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        try:
            async with asyncio.timeout(timeout):
                await waiter
        except TimeoutError:
            if in_the_end:
                return True
        finally:
            self._waiters.discard(waiter)
        # One of several waiters consumes the wake, but all of them answer True.
        return self._take() or (waiter.done() and not waiter.cancelled() and waiter.result())

    def _resolve(self, *, woken: bool) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(woken)

    def _take(self) -> bool:
        taken, self._is_woken = self._is_woken, False
        return taken
