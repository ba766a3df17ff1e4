"""A pooler as PgBouncer in transaction mode is one: after each transaction a client may get another session."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

from tests.stores.databases import DatabaseProcess, database_url
from tests.stores.doors import Door

SESSIONS: Final = 3
_SSL_REQUEST: Final = 80877103
_CANCEL_REQUEST: Final = 80877102
_GREETING: Final = (
    b"R" + struct.pack("!ii", 8, 0)
    # Its own, as that of no session.
    + b"K" + struct.pack("!iii", 12, 1, 1)
    + b"".join(
        b"S" + struct.pack("!i", len(pair) + 4) + pair
        for pair in (b"server_version\x0018.0\x00", b"client_encoding\x00UTF8\x00", b"integer_datetimes\x00on\x00")
    )
    + b"Z" + struct.pack("!i", 5) + b"I"
)  # fmt: skip


class Session:
    """One connection to the server, which clients use in turn."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def open(cls, server: DatabaseProcess) -> Session:
        session = cls(*await asyncio.open_unix_connection(str(server.path)))
        words = b"user\0postgres\0database\0postgres\0application_name\0pooler\0client_encoding\0UTF8\0\0"
        session.writer.write(struct.pack("!ii", len(words) + 8, 196608) + words)
        while (await read_message(session.reader))[:1] != b"Z":
            pass
        return session


async def read_message(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readexactly(5)
    return head + await reader.readexactly(struct.unpack("!i", head[1:])[0] - 4)


class Pooler:
    def __init__(self, server: DatabaseProcess) -> None:
        self._server = server
        self._idle: list[Session] = []
        self._turn = asyncio.Semaphore(SESSIONS)
        self._door = Door(self._serve)
        self.sessions_of: dict[asyncio.StreamWriter, set[Session]] = {}
        """Which sessions each client has used."""

    def url(self, **options: str) -> str:
        return database_url("postgres", f"127.0.0.1:{self._door.port}", sslmode="disable", **options)

    async def start(self) -> None:
        self._idle = [await Session.open(self._server) for _ in range(SESSIONS)]
        self._door.open()

    async def stop(self) -> None:
        await self._door.shut()
        for session in self._idle:
            session.writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            if await self._greet(reader, writer):
                while True:
                    await self._transaction(reader, writer)

    async def _greet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        while True:
            size, code = struct.unpack("!ii", await reader.readexactly(8))
            await reader.readexactly(size - 8)
            if code == _CANCEL_REQUEST:
                return False
            if code != _SSL_REQUEST:
                break
            writer.write(b"N")
        writer.write(_GREETING)
        return True

    async def _transaction(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        message = await read_message(reader)
        if message[:1] == b"X":
            raise ConnectionResetError("the client says good-bye")
        async with self._turn:
            # The one that rested longest, so that a client hardly ever gets the same twice.
            session = self._idle.pop(0)
            self.sessions_of.setdefault(writer, set()).add(session)
            try:
                while True:
                    session.writer.write(message)
                    if message[:1] in (b"S", b"Q") and await self._answer(session, writer):
                        break
                    message = await read_message(reader)
            except BaseException:
                # It may still have something to say to a client that has gone.
                session.writer.transport.abort()
                session = await Session.open(self._server)
                raise
            finally:
                self._idle.append(session)

    async def _answer(self, session: Session, writer: asyncio.StreamWriter) -> bool:
        """Passes on what the session says; answers whether it is outside of any transaction then."""
        while True:
            said = await read_message(session.reader)
            writer.write(said)
            await writer.drain()
            if said[:1] == b"Z":
                return said[5:] == b"I"


@asynccontextmanager
async def pooled(server: DatabaseProcess) -> AsyncIterator[Pooler]:
    pooler = Pooler(server)
    await pooler.start()
    try:
        yield pooler
    finally:
        await pooler.stop()
