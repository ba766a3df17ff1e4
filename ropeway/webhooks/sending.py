"""Sending one message: a POST, and the first bytes of its answer.

Redirects are not followed. The whole of it, from resolving the name to the last byte read, has one deadline.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from typing import Final

import h11

from ..job.web_urls import WebUrl
from .connections import MOST_BYTES, Connection, Connections
from .failures import Unreachable
from .reply import Reply
from .resolving import checked_url

DEADLINE: Final = 10.0
EXCERPT: Final = 500
"""Most bytes of an answer's body that are kept."""


class Sender:
    """Sends messages. Belongs to one event loop."""

    def __init__(self, connections: Connections | None = None, deadline: float = DEADLINE) -> None:
        self._connections = connections or Connections()
        self._deadline = deadline

    async def send(self, url: str, headers: list[tuple[str, str]], body: bytes, allowed: Iterable[str]) -> Reply:
        """Sends it once. Raises `Refused` if the URL is not allowed, `Unreachable` without a readable answer."""
        hosts = (*allowed,)
        target = checked_url(url, hosts)
        began = time.monotonic()
        exchange = _Exchange()
        try:
            async with asyncio.timeout(self._deadline):
                await self._exchange(exchange, target, headers, body, hosts)
        except TimeoutError:
            # A body that does not end is not waited for: the status says all.
            if exchange.status is None:
                raise Unreachable(f"it did not answer within {self._deadline:g} s") from None
        if exchange.status is None:
            raise Unreachable("it closed the connection without an answer")
        took = time.monotonic() - began
        return Reply(exchange.status, exchange.retry_after, bytes(exchange.excerpt), took)

    def close(self) -> None:
        self._connections.close()

    async def _exchange(
        self, exchange: _Exchange, url: WebUrl, headers: list[tuple[str, str]], body: bytes, hosts: tuple[str, ...]
    ) -> None:
        connection = await self._connections.get(url, hosts)
        if not await self._try(exchange, connection, url, headers, body) and connection.is_used:
            # The receiver had closed it meanwhile.
            connection = await self._connections.get(url, hosts, new=True)
            await self._try(exchange, connection, url, headers, body)

    async def _try(
        self, exchange: _Exchange, connection: Connection, url: WebUrl, headers: list[tuple[str, str]], body: bytes
    ) -> bool:
        """False if the connection ended before any of the answer came."""
        is_whole = False
        try:
            is_whole = await exchange.run(connection, url, headers, body)
        except (OSError, h11.RemoteProtocolError) as error:
            if exchange.received and exchange.status is None:
                raise Unreachable(f"its answer cannot be read: {error}") from None
        finally:
            if is_whole:
                self._connections.keep(url, connection)
            else:
                connection.close()
        return exchange.received > 0


class _Exchange:
    """One request and what is known of its answer."""

    def __init__(self) -> None:
        self.status: int | None = None
        self.retry_after: str | None = None
        self.excerpt = bytearray()
        self.received = 0

    async def run(self, connection: Connection, url: WebUrl, headers: list[tuple[str, str]], body: bytes) -> bool:
        """True if the whole answer was read, so that the connection can be used again."""
        http, writer = connection.http, connection.writer
        fields = [
            ("host", url.authority),
            ("user-agent", "ropeway"),
            # Never decompressed: a few bytes could become gigabytes.
            ("accept-encoding", "identity"),
            ("content-type", "application/json"),
            ("content-length", str(len(body))),
            *headers,
        ]
        start = http.send(h11.Request(method="POST", target=url.target, headers=fields)) or b""
        end = (http.send(h11.Data(data=body)) or b"") + (http.send(h11.EndOfMessage()) or b"")
        writer.write(start + end)
        await writer.drain()
        while True:
            event = http.next_event()
            if event is h11.NEED_DATA:
                if self.received >= MOST_BYTES:
                    if self.status is None:
                        raise Unreachable(f"the headers of its answer are longer than {MOST_BYTES // 1024} KiB")
                    return False
                data = await connection.reader.read(min(16 * 1024, MOST_BYTES - self.received))
                self.received += len(data)
                http.receive_data(data)
                if not data and self.status is not None:
                    return False
            elif isinstance(event, h11.Response):
                self.status = event.status_code
                found = (value.decode("latin-1") for name, value in event.headers if name == b"retry-after")
                self.retry_after = next(found, None)
            elif isinstance(event, h11.Data):
                self.excerpt += event.data[: EXCERPT - len(self.excerpt)]
            elif isinstance(event, h11.EndOfMessage):
                return True
            elif not isinstance(event, h11.InformationalResponse):
                return False
