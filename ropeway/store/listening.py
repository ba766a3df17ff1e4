"""Listeners of stores that hear of wakes over the network: one connection, their ear, hears for all of them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Generic, Protocol, TypeVar

from ..errors import StoreClosed
from .commands import Claim
from .values import Served

FIRST_PATIENCE: Final = 1.0


class HearsForAll(Protocol):
    def add(self, listener: Any) -> None:
        """Wakes the listener as soon as it is heard for: whatever happened before was missed."""
        ...

    def remove(self, listener: Any) -> None: ...


Ear = TypeVar("Ear", bound=HearsForAll)


class EarListener(Generic[Ear]):
    """Remembers one wake until it is waited for, so that none is missed between looking and waiting."""

    def __init__(self, ear: Callable[[], Ear], usable: Callable[[], None], url: str) -> None:
        """`ear` finds that of the running loop; `usable` raises what is wrong with the handle."""
        self._ear_here = ear
        self._ear: Ear | None = None
        self._usable = usable
        self._url = url
        self._pid = os.getpid()
        self._is_open = True
        self._is_woken = False
        self._heard = asyncio.Event()
        self._was_patient = False
        self._interrupts = 0
        self._waiters: set[asyncio.Future[bool]] = set()
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            # Made before the loop runs: the first wait begins to listen, and is woken when it does.
            return
        self._add()

    async def wait(self, timeout: float | None = None) -> bool:
        """After `close` it raises `StoreClosed`; a wait that is under way then answers True."""
        interrupts = self._interrupts
        await self._hearing()
        return self._take() or (interrupts == self._interrupts and await self._woken(timeout))

    async def claim(self, request: Claim, timeout: float | None = None) -> Served | None:
        """Only waits."""
        await self.wait(timeout)
        return None

    def interrupt(self) -> None:
        # Whoever waits for the server to hear of it is among those who wait.
        self._interrupts += 1
        self._resolve(woken=False)

    def wake(self) -> None:
        self._is_woken = True
        self._heard.set()
        self._resolve(woken=True)

    def close(self) -> None:
        """In a forked child it only looks closed: its connection and whoever waits are the parent's."""
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
            self._ear = self._ear_here()
            self._ear.add(self)
        return self._ear

    async def _hearing(self) -> None:
        """Lets the server know first, once: whoever asks in a hurry would wait without hearing."""
        self._listening()
        if not self._was_patient:
            self._was_patient = True
            with suppress(TimeoutError):
                async with asyncio.timeout(FIRST_PATIENCE):
                    await self._heard.wait()

    async def _woken(self, timeout: float | None, *, in_the_end: bool = False) -> bool:
        """Whether it was woken; `in_the_end` is the answer when the time is over."""
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
        # Of several waiters one takes the wake, but all of them heard it.
        return self._take() or (waiter.done() and not waiter.cancelled() and waiter.result())

    def _resolve(self, *, woken: bool) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(woken)

    def _take(self) -> bool:
        taken, self._is_woken = self._is_woken, False
        return taken
