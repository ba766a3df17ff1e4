"""What happens to a server and to the network before it, under workers that know nothing of it."""

from __future__ import annotations

import asyncio
import time
from typing import Final, Protocol

from tests.stores.network import Proxy

from .chaos import Blow

A_WHILE: Final = 0.3
"""Seconds that a trouble lasts: less than any lock."""
TIMEOUT: Final = 1.0
"""Seconds after which workers give up a call that is not answered."""


class MortalServer(Protocol):
    def url(self) -> str: ...

    def start(self) -> None: ...

    def kill(self) -> None:
        """Without a chance to save anything."""


class Accidents:
    """Workers reach the server through the proxy; the test itself reaches it directly."""

    def __init__(self, server: MortalServer, proxy: Proxy) -> None:
        self._server = server
        self._proxy = proxy
        self.there: Final = asyncio.Lock()
        """Whoever has it finds the server there."""
        self.blows: list[Blow] = []

    @property
    def url(self) -> str:
        return self._server.url()

    @property
    def workers_url(self) -> str:
        return self._proxy.url(timeout=str(TIMEOUT))

    async def kill_server(self) -> None:
        async with self.there:
            began = time.monotonic()
            await asyncio.to_thread(self._server.kill)
            await asyncio.to_thread(self._server.start)
        self._note(began)

    async def cut_connections(self) -> None:
        began = time.monotonic()
        self._proxy.cut()
        self._note(began)

    async def lose_answers(self) -> None:
        """The server does what it is asked, and nobody hears of it."""
        began = time.monotonic()
        self._proxy.swallow_answers()
        await self._proxy.swallowed.wait()
        await asyncio.sleep(A_WHILE)
        self._proxy.heal()
        self._proxy.cut()
        self._note(began)

    async def delay_answers(self) -> None:
        began = time.monotonic()
        self._proxy.latency = A_WHILE
        await asyncio.sleep(3 * A_WHILE)
        self._proxy.heal()
        self._note(began)

    async def fall_silent(self) -> None:
        began = time.monotonic()
        self._proxy.fall_silent()
        await asyncio.sleep(A_WHILE)
        self._proxy.heal()
        self._note(began)

    async def refuse_connections(self) -> None:
        began = time.monotonic()
        await self._proxy.stop()
        await asyncio.sleep(A_WHILE)
        self._proxy.start()
        self._note(began)

    def _note(self, began: float) -> None:
        # Whoever waits for an answer that was lost needs a while to see that.
        self.blows.append(Blow(None, began, time.monotonic() + TIMEOUT))
