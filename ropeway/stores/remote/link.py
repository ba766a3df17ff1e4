"""One connection to the server: HTTP/1.1, one request at a time."""

from __future__ import annotations

import asyncio
from typing import Final, NamedTuple, cast

import h11

MOST_HEADER_BYTES: Final = 64 * 1024


class Reply(NamedTuple):
    status: int
    headers: dict[bytes, bytes]
    body: bytes


class Link(asyncio.Protocol):
    """Raises `OSError` for whatever ends a request without an answer; the link is of no use then."""

    def __init__(self) -> None:
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=MOST_HEADER_BYTES)
        self._transport: asyncio.Transport | None = None
        self._answer: asyncio.Future[Reply] | None = None
        self._head: h11.Response | None = None
        self._body: list[bytes] = []
        self.closed: Final = asyncio.Event()
        self.used_at = 0.0
        """When its last request ended, on the loop's clock."""

    @property
    def is_up(self) -> bool:
        transport = self._transport
        return transport is not None and not transport.is_closing() and self._http.their_state is not h11.MUST_CLOSE

    async def ask(self, method: str, target: str, headers: list[tuple[str, str]], body: bytes) -> Reply:
        """Sends a request, and reads its answer. A caller that is cancelled ends the connection."""
        transport = self._transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError("the server closed the connection")
        http = self._http
        if http.our_state is h11.DONE:
            http.start_next_cycle()
        self._head, self._body = None, []
        self._answer = asyncio.get_running_loop().create_future()
        start = http.send(h11.Request(method=method, target=target, headers=headers))
        data = http.send(h11.Data(data=body))
        end = http.send(h11.EndOfMessage())
        transport.write(b"".join(part for part in (start, data, end) if part))
        try:
            return await self._answer
        except BaseException:
            self.abort()
            raise
        finally:
            self._answer = None

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    # Called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self._answer is None:
            # Nobody asked: no server of ours does that.
            self.abort()
            return
        self._http.receive_data(data)
        self._read()

    def eof_received(self) -> bool:
        if self._answer is not None:
            self._http.receive_data(b"")
            self._read()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed.set()
        reason = f": {exc}" if exc is not None else ""
        self._fail(ConnectionResetError(f"the connection ended before its answer came{reason}"))

    def _read(self) -> None:
        try:
            while True:
                event = self._http.next_event()
                if event is h11.NEED_DATA or event is h11.PAUSED:
                    return
                if isinstance(event, h11.Response):
                    self._head = event
                elif isinstance(event, h11.Data):
                    self._body.append(bytes(event.data))
                elif isinstance(event, h11.EndOfMessage):
                    self._end()
                    return
                elif isinstance(event, h11.ConnectionClosed):
                    self._fail(ConnectionResetError("the connection ended before its answer came"))
                    return
        except h11.RemoteProtocolError as error:
            self._fail(ConnectionAbortedError(f"its answer is not HTTP ({error})"))
            self.abort()

    def _end(self) -> None:
        head = self._head
        assert head is not None, "an answer begins with its head"
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(Reply(head.status_code, dict(head.headers), b"".join(self._body)))

    def _fail(self, error: OSError) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error)
