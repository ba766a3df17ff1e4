"""The bad network of the tests may lose and delay what it is given, as a real one does, but not change its order."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from .network import Proxy


class _Echo:
    """Answers with what it is asked."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "echo.sock"

    def url(self) -> str:
        return f"echo://{self.path}"

    def url_by(self, place: str, *, tls: bool, **options: str) -> str:
        return f"echo://{place}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while asked := await reader.read(100):
            writer.write(asked)
        writer.close()


async def test_answers_stay_in_order_when_a_delay_ends(tmp_path: Path):
    echo = _Echo(tmp_path)
    server = await asyncio.start_unix_server(echo.serve, echo.path)
    proxy = SlowTurns(echo)
    proxy.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    proxy.latency = 0.01
    writer.write(b"a")
    await proxy.passed.wait()
    proxy.heal()
    writer.write(b"b")

    assert await reader.readexactly(2) == b"ab"
    writer.close()
    await proxy.stop()
    server.close()


class SlowTurns(Proxy):
    """Other work of its loop keeps it busy until what was delayed is due, and something else has come too."""

    def __init__(self, server: _Echo) -> None:
        super().__init__(server)
        self.passed = asyncio.Event()

    async def _pass(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        if self.passed.is_set():
            time.sleep(0.05)  # noqa: ASYNC251 - the loop shall stand still
        await super()._pass(writer, data)
        self.passed.set()
