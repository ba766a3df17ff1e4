"""A bad network: a proxy before a server that cuts, delays, silences and starves connections."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final, Protocol

from .doors import Door

CHUNK: Final = 65_536


class Server(Protocol):
    @property
    def path(self) -> Path:
        """Of the Unix socket at which it is reached without the bad network."""

    def url(self) -> str:
        """That of its stores."""

    def url_by(self, place: str, *, tls: bool, **options: str) -> str:
        """The same for whoever goes by a host and port that are not its own."""


class Proxy:
    """Passes on what it hears, unless it was told otherwise."""

    def __init__(self, server: Server, tls: ssl.SSLContext | None = None) -> None:
        self._server = server
        self._tls = tls
        self._door = Door(self._serve, tls)
        self._writers: set[asyncio.StreamWriter] = set()
        self._dead: set[asyncio.StreamWriter] = set()
        self._due: dict[asyncio.StreamWriter, float] = {}
        """When the last answer is sent, where some are kept back."""
        self._is_swallowing = False
        self._is_silent = False
        self._is_cutting = False
        self.latency = 0.0
        """Seconds by which every answer comes later."""
        self.rate: float | None = None
        """Bytes of answers in a second."""
        self.swallowed = asyncio.Event()
        """Set when an answer was swallowed: the server has done what it was asked."""

    @property
    def port(self) -> int:
        return self._door.port

    def url(self, host: str = "127.0.0.1", **options: str) -> str:
        return self._server.url_by(f"{host}:{self.port}", tls=self._tls is not None, **options)

    def swallow_answers(self) -> None:
        self.swallowed.clear()
        self._is_swallowing = True

    def cut_in_the_next_answer(self) -> None:
        """Resets a connection when half of an answer has come through."""
        self._is_cutting = True

    def fall_silent(self) -> None:
        """From now on nothing comes through; nobody is told, and connections of this time never will be of use."""
        self._is_silent = True
        self._dead |= self._writers

    def heal(self) -> None:
        self._is_swallowing = self._is_silent = False
        self.latency, self.rate = 0.0, None

    def cut(self) -> None:
        """Ends all connections, as a reset does."""
        for writer in self._writers:
            writer.transport.abort()

    def start(self) -> None:
        """Again at the same port, if it was stopped."""
        self._door.open()

    async def stop(self) -> None:
        """Takes no connections any more: they are refused, as where no server is."""
        await self._door.shut()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ends = {writer}
        try:
            with suppress(OSError):
                there, to_there = await asyncio.open_unix_connection(str(self._server.path))
                ends.add(to_there)
                self._writers |= ends
                if self._is_silent:
                    self._dead |= ends
                await asyncio.gather(self._ask(reader, to_there), self._answer(there, writer))
        finally:
            self._writers -= ends
            self._dead -= ends
            self._due.pop(writer, None)
            for end in ends:
                end.transport.abort()

    async def _ask(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(CHUNK):
                if writer not in self._dead:
                    writer.write(data)
                    await writer.drain()
        writer.transport.abort()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(CHUNK):
                if writer in self._dead:
                    continue
                if self._is_swallowing:
                    self.swallowed.set()
                elif self._is_cutting:
                    self._is_cutting = False
                    writer.write(data[: len(data) // 2])
                    await writer.drain()
                    break
                else:
                    await self._pass(writer, data)
        writer.transport.abort()

    async def _pass(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        loop = asyncio.get_running_loop()
        if self.latency or writer in self._due:
            # Never before what came before, even if that should have been sent by now.
            due = max(loop.time() + self.latency, self._due.get(writer, 0.0) + 0.000_001)
            self._due[writer] = due
            loop.call_at(due, self._write, writer, data, due)
            return
        while self.rate and data and not writer.is_closing():
            piece = max(1, int(self.rate / 50))
            writer.write(data[:piece])
            data = data[piece:]
            await asyncio.sleep(piece / self.rate)
        writer.write(data)
        await writer.drain()

    def _write(self, writer: asyncio.StreamWriter, data: bytes, due: float) -> None:
        if self._due.get(writer) == due:
            del self._due[writer]
        if not writer.is_closing():
            writer.write(data)


@asynccontextmanager
async def proxied(server: Server, tls: ssl.SSLContext | None = None, kind: type[Proxy] = Proxy) -> AsyncIterator[Proxy]:
    proxy = kind(server, tls)
    proxy.start()
    try:
        yield proxy
    finally:
        await proxy.stop()
