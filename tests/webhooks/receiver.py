"""A receiver of webhooks on this machine: a small HTTP/1.1 server whose answers a test chooses."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

PATIENCE: Final = 60


class Request(NamedTuple):
    target: str
    headers: dict[str, str]
    body: bytes


Answer = Callable[[Request, asyncio.StreamWriter], Awaitable[None]]


def plain(status: str = "200 OK", body: bytes = b"fine", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"content-length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


class Receiver:
    """Answers each request with `answers`, in order, and the last one for ever."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.answers: list[bytes | Answer] = [plain()]
        self.connections = 0
        self.port = 0
        self.scheme = "http"
        self.host = "localhost"
        self._came = asyncio.Condition()
        self._serving: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.host}:{self.port}/hook?x=1"

    @property
    def allowed(self) -> tuple[str, ...]:
        return (f"{self.host}:{self.port}",)

    async def got(self, number: int) -> list[Request]:
        async with asyncio.timeout(PATIENCE), self._came:
            await self._came.wait_for(lambda: len(self.requests) >= number)
        return self.requests

    def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.create_task(self._serve(reader, writer))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def close(self) -> None:
        """End every connection, also one whose answer never comes."""
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                start, *lines = head.decode().rstrip().split("\r\n")
                headers = _fields(lines)
                body = await reader.readexactly(int(headers["content-length"]))
                request = Request(start.split(" ")[1], headers, body)
                answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
                async with self._came:
                    self.requests.append(request)
                    self._came.notify_all()
                if isinstance(answer, bytes):
                    writer.write(answer)
                    await writer.drain()
                else:
                    await answer(request, writer)
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            writer.close()


def _fields(lines: list[str]) -> dict[str, str]:
    return {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}


@asynccontextmanager
async def receiving(tls: ssl.SSLContext | None = None) -> AsyncIterator[Receiver]:
    receiver = Receiver()
    server = await asyncio.start_server(receiver.connected, "127.0.0.1", 0, ssl=tls)
    receiver.port = server.sockets[0].getsockname()[1]
    receiver.scheme = "http" if tls is None else "https"
    try:
        yield receiver
    finally:
        server.close()
        await receiver.close()
