"""Connections to receivers: to a checked address, with TLS to the host's name, kept open for the next message."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from typing import Final, TypeAlias

import h11

from ..job.web_urls import WebUrl
from .failures import Unreachable
from .resolving import Resolve, SystemResolver, addresses_of

MOST_BYTES: Final = 64 * 1024
"""Most bytes of an answer that are read, headers included."""
KEPT_PER_HOST: Final = 32
KEPT_IN_ALL: Final = 128
IDLE: Final = 4.0
"""Seconds for which an unused connection is kept: servers close them after 5 s and more."""
OLDEST: Final = 60.0
"""Seconds after which a connection is not used again, so that changes of the name's addresses are seen."""
CONNECT: Final = 4.0
"""Seconds to connect to one address, if there are others to try."""

Place: TypeAlias = tuple[str, str, int]


class Connection:
    """One connection, and the state of HTTP/1.1 on it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, now: float) -> None:
        self.reader = reader
        self.writer = writer
        self.http = h11.Connection(h11.CLIENT, max_incomplete_event_size=MOST_BYTES)
        self.opened_at = self.used_at = now
        self.is_used = False
        """True if a message was sent on it before: then the receiver may have closed it meanwhile."""

    def is_fresh(self, now: float) -> bool:
        is_recent = now - self.used_at < IDLE and now - self.opened_at < OLDEST
        return is_recent and not self.reader.at_eof() and not self.writer.is_closing()

    def close(self) -> None:
        # Not by a handshake that the other side could delay.
        with suppress(Exception):
            self.writer.transport.abort()


class Connections:
    """Opens connections and keeps idle ones. Belongs to one event loop. Ignores proxies of the environment."""

    def __init__(self, resolve: Resolve | None = None) -> None:
        self._resolve = resolve or SystemResolver()
        self._idle: dict[Place, list[Connection]] = {}
        self._kept = 0
        self._loop = asyncio.get_running_loop()

    async def get(self, url: WebUrl, allowed: Iterable[str], *, new: bool = False) -> Connection:
        """A connection to one of the URL's addresses, an idle one if there is one and `new` is not asked for."""
        idle = self._idle.get(_place(url))
        now = self._loop.time()
        while idle:
            connection = idle.pop()
            self._kept -= 1
            if not new and connection.is_fresh(now):
                return connection
            connection.close()
        return await self._open(url, await addresses_of(url, allowed, self._resolve))

    def keep(self, url: WebUrl, connection: Connection) -> None:
        """Takes back a connection after an answer; it is closed if it cannot be used again, or enough are kept."""
        if connection.http.our_state is h11.DONE and connection.http.their_state is h11.DONE:
            self._drop_old()
            idle = self._idle.setdefault(_place(url), [])
            if len(idle) < KEPT_PER_HOST and self._kept < KEPT_IN_ALL:
                connection.http.start_next_cycle()
                connection.used_at, connection.is_used = self._loop.time(), True
                idle.append(connection)
                self._kept += 1
                return
        connection.close()

    def close(self) -> None:
        for idle in self._idle.values():
            for connection in idle:
                connection.close()
        self._idle, self._kept = {}, 0

    def _drop_old(self) -> None:
        now = self._loop.time()
        for place, idle in [*self._idle.items()]:
            while idle and not idle[0].is_fresh(now):
                idle.pop(0).close()
                self._kept -= 1
            if not idle:
                del self._idle[place]

    async def _open(self, url: WebUrl, addresses: list[str]) -> Connection:
        context = _tls() if url.scheme == "https" else None
        name = url.host if context is not None else None
        for number, address in enumerate(addresses, 1):
            try:
                async with asyncio.timeout(None if number == len(addresses) else CONNECT):
                    reader, writer = await asyncio.open_connection(
                        address, url.port, ssl=context, server_hostname=name, limit=MOST_BYTES
                    )
                return Connection(reader, writer, self._loop.time())
            except (OSError, TimeoutError) as error:
                if number == len(addresses):
                    raise Unreachable(_why(error)) from None
        raise AssertionError("there is at least one address")


def _place(url: WebUrl) -> Place:
    return url.scheme, url.host, url.port


@lru_cache(maxsize=1)
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()


def _why(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not valid: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed: {error.reason or error}"
    # Not its own text, in which asyncio names the address.
    number = getattr(error, "errno", None)
    return f"it cannot be connected to: {os.strerror(number) if number else type(error).__name__}"
