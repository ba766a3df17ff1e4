"""The connections of one event loop to the server, kept for the next requests."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import nullcontext
from typing import Final

from ... import __version__
from ...errors import NotConnected, StoreClosed, StoreRefused, StoreUnavailable
from ...store.doubt import said
from ...store.tries import PATIENCE, Tries
from .link import Link, Reply
from .target import Target

AT_ONCE: Final = 16
"""Most requests at once, besides those that wait: others queue up here, and not in the server."""
IDLE: Final = 20.0
"""Seconds after which an unused connection is closed: servers and proxies do so after a minute or so."""
MEDIA: Final = "application/msgpack"


class Connections:
    """Opens connections when all are in use, and keeps idle ones. Belongs to one event loop."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._loop = asyncio.get_running_loop()
        self._places = asyncio.Semaphore(AT_ONCE)
        self._idle: list[Link] = []
        self._busy: set[Link] = set()
        self._tls: ssl.SSLContext | None = None
        self._was_up = False
        self._is_closed = False
        self._cleaning: asyncio.TimerHandle | None = None
        self._headers = [
            ("host", target.authority),
            ("user-agent", f"ropeway/{__version__}"),
            ("content-type", MEDIA),
            ("accept", MEDIA),
            # Never decompressed: a few bytes could become gigabytes.
            ("accept-encoding", "identity"),
        ]
        if target.token is not None:
            self._headers.append(("authorization", f"Bearer {target.token}"))

    async def ask(self, path: str, body: bytes, seconds: float, *, waits: bool = False) -> Reply:
        """Sends a POST. `waits` marks one that the server may hold for long.

        Raises `NotConnected` if nothing was sent, and `OSError` (a `TimeoutError` after `seconds`) if that is unknown.
        """
        async with nullcontext() if waits else self._places:
            link = self._take() or await self._open()
            self._busy.add(link)
            try:
                headers = [*self._headers, ("content-length", str(len(body)))]
                async with asyncio.timeout(seconds):
                    reply = await link.ask("POST", f"{self._target.path}{path}", headers, body)
                self._was_up = True
                self._keep(link)
                return reply
            finally:
                self._busy.discard(link)

    async def close(self) -> None:
        self._is_closed = True
        links = [*self._idle, *self._busy]
        self._idle.clear()
        if self._cleaning is not None:
            self._cleaning.cancel()
        for link in links:
            link.abort()
        for link in links:
            await link.closed.wait()

    def _take(self) -> Link | None:
        """The idle connection that was used last."""
        # Also if this process stood still, and the timer that closes them has not run.
        oldest = self._loop.time() - IDLE
        while self._idle:
            link = self._idle.pop()
            if link.is_up and link.used_at > oldest:
                return link
            link.abort()
        return None

    def _keep(self, link: Link) -> None:
        if not link.is_up or self._is_closed or len(self._idle) >= AT_ONCE:
            link.abort()
            return
        link.used_at = self._loop.time()
        self._idle.append(link)
        if self._cleaning is None:
            self._cleaning = self._loop.call_later(IDLE, self._close_unused)

    def _close_unused(self) -> None:
        """Closes what was not needed for a while: the last that were used are used first."""
        oldest = self._loop.time() - IDLE
        while self._idle and self._idle[0].used_at <= oldest:
            self._idle.pop(0).abort()
        self._cleaning = self._loop.call_at(self._idle[0].used_at + IDLE, self._close_unused) if self._idle else None

    async def _open(self) -> Link:
        """A new connection; a server that worked before is tried for some seconds."""
        tries = Tries(PATIENCE if self._was_up else 0)
        pauses = tries.pauses()
        while True:
            if self._is_closed:
                raise StoreClosed(self._target.url)
            try:
                return await self._connect(tries.patience())
            except StoreUnavailable as error:
                pause = next(pauses, None)
                if pause is None:
                    # Whoever asks next need not wait as long.
                    self._was_up = False
                    raise NotConnected(self._target.url, said(error)) from error
            await asyncio.sleep(pause)

    async def _connect(self, patience: float) -> Link:
        target = self._target
        if self._tls is None:
            self._tls = target.tls()
        address = f"{target.host}:{target.port}"
        try:
            async with asyncio.timeout(patience):
                _, link = await self._loop.create_connection(Link, target.host, target.port, ssl=self._tls)
        except ssl.SSLCertVerificationError as error:
            raise StoreRefused(target.url, f"{address} is not to be trusted: {error.verify_message}") from error
        except ssl.SSLError as error:
            raise StoreUnavailable(
                target.url, f"{address} does not speak TLS as we do, or is an http:// server: {error.reason}"
            ) from error
        except TimeoutError as error:
            what = f"{address} cannot be reached: no answer within {patience:g} s"
            raise StoreUnavailable(target.url, what) from error
        except OSError as error:
            raise StoreUnavailable(target.url, f"{address} cannot be reached: {error}") from error
        return link
