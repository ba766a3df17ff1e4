"""A server for tests, which ends when its standard input does. It prints the port at which it listens.

With a folder: a broker on a file in it, which listens there on a Unix socket too, and at the given port. Without:
`/place/NAME` is a broker on the store whose URL is NAME, in hexadecimal digits.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from pathlib import Path
from typing import Any, cast

from ropeway.server import Broker, Limits, broker
from ropeway.server.serving import LOCAL, server_for


class Brokers:
    """An ASGI application, which looks like a broker to the one that serves it."""

    limits = Limits()

    def __init__(self) -> None:
        self._brokers: dict[str, Broker] = {}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            return await self._live(receive, send)
        _, _, name, *_ = scope["path"].split("/")
        found = self._brokers.get(name)
        if found is None:
            await self._close_old()
            found = self._brokers[name] = broker(bytes.fromhex(name).decode(), test_clock=True)
        return await found({**scope, "root_path": f"/place/{name}"}, receive, send)

    def end_waits(self) -> None:
        for each in self._brokers.values():
            each.end_waits()

    async def _live(self, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        for each in self._brokers.values():
            await each.close()
        await send({"type": "lifespan.shutdown.complete"})

    async def _close_old(self) -> None:
        """Those of tests that have ended: their folder is gone."""
        for name, each in [*self._brokers.items()]:
            path = Path(bytes.fromhex(name).decode().removeprefix("sqlite:///"))
            if not path.parent.exists():
                del self._brokers[name]
                await each.close()


def sockets(folder: str | None, port: int) -> list[socket.socket]:
    listening = [socket.create_server(("127.0.0.1", port))]
    if folder is not None:
        path = Path(folder) / "broker.sock"
        path.unlink(missing_ok=True)
        there = socket.socket(socket.AF_UNIX)
        there.bind(str(path))
        listening.append(there)
    return listening


async def main(folder: str | None = None, port: str = "0") -> None:
    app = cast(Broker, Brokers()) if folder is None else broker(f"sqlite:///{folder}/ropeway.db")
    listening = sockets(folder, int(port))
    server = server_for(app, LOCAL)
    serving = asyncio.create_task(server.serve(listening))
    await server.is_serving.wait()
    print(listening[0].getsockname()[1], flush=True)  # noqa: T201 - for the one that started it
    await asyncio.to_thread(sys.stdin.read)
    server.should_exit = True
    await serving


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
