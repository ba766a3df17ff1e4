"""A bad network: a proxy before a server that cuts connections and swallows answers, or looks like a pooler."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from tests.stores.databases import DatabaseProcess


class Proxy:
    def __init__(self, server: DatabaseProcess, *, hides_backend: bool = False) -> None:
        self._server = server
        self._hides_backend = hides_backend
        self._listening: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_swallowing = False
        self.swallowed = asyncio.Event()
        """Set when an answer was swallowed: the server has done what it was asked."""

    def url(self, schema: str, **options: str) -> str:
        assert self._listening is not None
        port = self._listening.sockets[0].getsockname()[1]
        said = "".join(f"&{option}={value}" for option, value in options.items())
        return (
            f"postgresql://postgres@127.0.0.1:{port}/postgres?schema={schema}&sslmode=disable&gssencmode=disable{said}"
        )

    def swallow_answers(self) -> None:
        self._is_swallowing = True

    def heal(self) -> None:
        self._is_swallowing = False
        self.swallowed.clear()

    def cut(self) -> None:
        """Ends all connections, as a reset does."""
        for writer in self._writers:
            writer.transport.abort()

    async def start(self) -> None:
        self._listening = await asyncio.start_server(self._serve, "127.0.0.1", 0)

    async def stop(self) -> None:
        assert self._listening is not None
        self._listening.close()
        self.cut()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._listening.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            path = self._server.folder / f".s.PGSQL.{self._server.port or 5432}"
            there, to_there = await asyncio.open_unix_connection(str(path))
            self._writers |= {writer, to_there}
            await asyncio.gather(self._pass(reader, to_there, answers=False), self._pass(there, writer, answers=True))
        finally:
            self._tasks.discard(task)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, answers: bool) -> None:
        is_first = True
        with suppress(OSError):
            while data := await reader.read(65_536):
                if answers and self._is_swallowing:
                    self.swallowed.set()
                    continue
                if answers and is_first and self._hides_backend:
                    # BackendKeyData: a pooler names a session of its own there.
                    at = data.index(b"K\x00\x00\x00\x0c")
                    data = data[: at + 5] + b"\x00\x00\x00\x07" + data[at + 9 :]
                is_first = False
                writer.write(data)
                await writer.drain()
        writer.transport.abort()


@asynccontextmanager
async def proxied(server: DatabaseProcess, *, hides_backend: bool = False) -> AsyncIterator[Proxy]:
    proxy = Proxy(server, hides_backend=hides_backend)
    await proxy.start()
    try:
        yield proxy
    finally:
        await proxy.stop()
