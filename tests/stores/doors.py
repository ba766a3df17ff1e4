"""Where connections come in to a server of the tests' own."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable
from typing import TypeAlias

Serve: TypeAlias = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Door:
    """Once it is shut, nobody who came in is left behind.

    A server of asyncio's own is not so: on Python 3.11 it leaves a connection open
    that it accepted in the turn of the loop before its close.
    """

    def __init__(self, serve: Serve, tls: ssl.SSLContext | None = None) -> None:
        self._serve = serve
        self._tls = tls
        self._socket: socket.socket | None = None
        self._guests: set[asyncio.Task[None]] = set()
        self.port = 0

    def open(self) -> None:
        """At the same port again, if it was shut."""
        self._socket = socket.create_server(("127.0.0.1", self.port))
        self._socket.setblocking(False)
        self.port = self._socket.getsockname()[1]
        asyncio.get_running_loop().add_reader(self._socket, self._let_in, self._socket)

    async def shut(self) -> None:
        """Takes no connections any more, and ends those that there are."""
        if self._socket is not None:
            asyncio.get_running_loop().remove_reader(self._socket)
            self._socket.close()
            self._socket = None
        for guest in self._guests:
            guest.cancel()
        if self._guests:
            await asyncio.wait(self._guests)

    def _let_in(self, listening: socket.socket) -> None:
        try:
            came, _ = listening.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        came.setblocking(False)
        guest = asyncio.create_task(self._receive(came))
        self._guests.add(guest)
        guest.add_done_callback(self._guests.discard)
        # By then nothing reads it any more; whoever was cancelled before it began has not touched it.
        guest.add_done_callback(lambda _: came.close())

    async def _receive(self, came: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader()
        protocol = asyncio.StreamReaderProtocol(reader)
        transport, _ = await loop.connect_accepted_socket(lambda: protocol, came, ssl=self._tls)
        try:
            await self._serve(reader, asyncio.StreamWriter(transport, protocol, reader, loop))
        finally:
            transport.abort()
