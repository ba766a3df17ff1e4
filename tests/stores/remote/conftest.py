"""Brokers in this process, and servers that are not brokers."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ropeway.server import broker
from ropeway.server.serving import Address, serving
from ropeway.store.contract import Store
from ropeway.store.url import connect

from ..doors import Door


@pytest.fixture
async def behind(tmp_path: Path) -> AsyncIterator[Store]:
    """The store behind a server."""
    store = connect(f"sqlite:///{tmp_path}/ropeway.db")
    yield store
    await store.close()


@asynccontextmanager
async def served(behind: Store, **settings: Any) -> AsyncIterator[str]:
    """The URL of a broker on the store."""
    async with serving(broker(behind), Address("127.0.0.1", 0), **settings) as address:
        yield f"{'https' if settings else 'http'}://localhost:{address.port}"


class Foreign:
    """A server that answers each request with the next of its texts, the last for ever."""

    def __init__(self, *answers: str, tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[bytes] = []
        self._answers = [*answers]
        self._door = Door(self._serve, tls)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._door.port}"

    async def __aenter__(self) -> Foreign:
        self._door.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._door.shut()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (head := await _head(reader)) is not None:
                self.requests.append(head)
                writer.write(self._answers[0].encode())
                del self._answers[: len(self._answers) > 1]
        finally:
            writer.transport.abort()


async def _head(reader: asyncio.StreamReader) -> bytes | None:
    """Reads a request; None when there are no more."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.startswith(b"content-length"))
    await reader.readexactly(length)
    return head


def answer(status: str, body: str = "", *headers: str) -> str:
    lines = [f"HTTP/1.1 {status}", f"content-length: {len(body)}", *headers]
    return "\r\n".join(lines) + "\r\n\r\n" + body
