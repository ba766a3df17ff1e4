"""Running a broker by uvicorn, with the limits that belong to connections."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, ClassVar, Final, NamedTuple

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import STATUS_PHRASES, H11Protocol

from ..errors import InvalidOption, StoreUnavailable
from ..showing import shown
from .application import Broker
from .authentication import is_loopback
from .limits import DEFAULTS, Limits

PORT: Final = 8787
HOST: Final = "127.0.0.1"
GRACE: Final = 10
"""Seconds that requests may take to end when the server does."""
KEEP_ALIVE: Final = 75
"""Seconds that an idle connection is kept: longer than clients and proxies keep theirs."""
UNACKNOWLEDGED: Final = 45.0
"""Seconds after which a connection is closed whose other side acknowledges nothing, as that of a page that vanished."""
BACKLOG: Final = 1_024
"""Connections that wait to be accepted."""


class Address(NamedTuple):
    host: str = HOST
    port: int = PORT

    @property
    def url(self) -> str:
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


LOCAL: Final = Address()


def refuse_open_doors(address: Address, *, has_tokens: bool, no_auth: bool) -> None:
    """Refuses to listen to other machines while anybody could do anything."""
    if is_loopback(address.host):
        return
    if no_auth:
        raise InvalidOption("insecure-no-auth", f"is for this machine alone, and not with the host {address.host}")
    if not has_tokens:
        raise InvalidOption(
            "host",
            f"cannot be {shown(address.host)} while the store has no token, because anybody could do anything: "
            "make one first, by `ropeway tokens create --role admin`",
        )


class Server(uvicorn.Server):
    """Answers the requests that wait when it is asked to end, instead of waiting for them."""

    def __init__(self, config: uvicorn.Config, broker: Broker) -> None:
        super().__init__(config)
        self._broker = broker
        self.is_serving = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leaves signals to the program around it."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.is_serving.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._broker.end_waits()
        await super().shutdown(sockets)


@asynccontextmanager
async def serving(broker: Broker, address: Address = LOCAL, **settings: Any) -> AsyncIterator[Address]:
    """Serves inside the block, at the address that it gives: port 0 takes one that is free.

    `settings` are those of uvicorn, such as `ssl_certfile`. Raises `OSError` if the address cannot be had.
    """
    # Before the server, which would end the program if this fails.
    await broker.start()
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    listening = socket.create_server((address.host, address.port), family=family, backlog=BACKLOG)
    server = server_for(broker, address, **settings)
    task = asyncio.create_task(server.serve([listening]))
    began = asyncio.create_task(server.is_serving.wait())
    try:
        await asyncio.wait([task, began], return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            await task
            raise StoreUnavailable(broker.store.url, "the server could not start: its log says why")
        yield Address(address.host, listening.getsockname()[1])
    finally:
        began.cancel()
        server.should_exit = True
        with suppress(SystemExit):
            await task
        listening.close()


def server_for(broker: Broker, address: Address, *, trusted_proxies: Sequence[str] = (), **settings: Any) -> Server:
    """A server that is not started yet."""
    limits = broker.limits
    # It says when it starts and ends; that is the program's own to say.
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    config = uvicorn.Config(
        broker,
        **{
            "host": address.host,
            "port": address.port,
            "http": type("Protocol", (GuardedProtocol,), {"limits": limits}),
            "ws": "none",
            "lifespan": "on",
            "log_config": None,
            "access_log": False,
            "server_header": False,
            # Whoever is not trusted could claim any address.
            "proxy_headers": bool(trusted_proxies),
            "forwarded_allow_ips": list(trusted_proxies),
            "h11_max_incomplete_event_size": limits.header_bytes,
            "timeout_keep_alive": KEEP_ALIVE,
            "timeout_graceful_shutdown": GRACE,
            **settings,
        },
    )
    return Server(config, broker)


class GuardedProtocol(H11Protocol):
    """The protocol of uvicorn, which also limits connections, and ends those whose requests do not begin in time."""

    limits: ClassVar[Limits] = DEFAULTS
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        _tune(transport)
        if len(self.connections) > self.limits.connections:
            self._end(503, "There are too many connections.")
        else:
            self._expect_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        # A head that has begun is not complete, as those of an attacker that sends a letter at a time.
        if self.conn.their_state is h11.IDLE and self.conn.trailing_data[0]:
            self._expect_head()
        else:
            self._forget_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_head()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        # Called while the error is handled, which knows better: 431 for a head that is too large.
        self._end(getattr(sys.exception(), "error_status_hint", 400), msg)

    def _expect_head(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(self.limits.header_seconds, self._give_up)

    def _forget_head(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        if not self.transport.is_closing():
            self._end(408, "The request did not arrive in time.")

    def _end(self, status: int, message: str) -> None:
        head = f"HTTP/1.1 {status} {STATUS_PHRASES[status].decode()}\r\n"
        fields = f"content-type: text/plain\r\ncontent-length: {len(message)}\r\nconnection: close\r\n"
        retry = "retry-after: 1\r\n" if status == 503 else ""
        self.transport.write(f"{head}{fields}{retry}\r\n{message}".encode())
        self.transport.close()


def _tune(transport: asyncio.BaseTransport) -> None:
    connection = transport.get_extra_info("socket")
    if connection is None or connection.family == socket.AF_UNIX:
        return
    # Sends the body of an answer without waiting until its head was acknowledged, which takes 40 ms. asyncio does so
    # itself, but not for connections to a socket of `socket.create_server`.
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if sys.platform == "linux":
        # Else it goes on for 15 minutes.
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(UNACKNOWLEDGED * 1000))
