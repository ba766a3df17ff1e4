"""One pipelined connection to a server.

Answers come in the order of the commands, so a caller that was cancelled leaves its place in the row, and its answer
is dropped when it comes: nobody ever gets another one's.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Final, TypeAlias, cast

import hiredis

Argument: TypeAlias = str | bytes
"""Numbers as text: when a signal handler raises just as hiredis makes text of one, it crashes the process."""
Hear: TypeAlias = Callable[[list[Any]], None]

SIGN_OF_LIFE: Final = 65_536
"""Bytes after which a server counts as answering although its answer is not whole yet."""
NOT_ENOUGH: Final = object()
_BUFFER: Final = 64 * 1024
# Its stubs say that a command has one word, and that only bytes can be fed.
pack_command: Final[Callable[[tuple[Argument, ...]], bytes]] = cast(Any, hiredis.pack_command)


class Link(asyncio.BufferedProtocol):
    """The protocol of one connection; when that ends, `Connection` opens another link.

    After `hear` it is for subscriptions: what the server says goes there, and commands have no answers.
    """

    def __init__(self, timeout: float) -> None:
        self.is_up = False
        self._loop = asyncio.get_running_loop()
        self.ended: Final[asyncio.Event] = asyncio.Event()
        """Set when it is no longer up."""
        self.closed: Final[asyncio.Event] = asyncio.Event()
        """Set when its socket is closed too."""
        self._timeout = timeout
        self._hear: Hear | None = None
        self._reader = hiredis.Reader(notEnoughData=NOT_ENOUGH)
        self._feed: Callable[[bytearray, int, int], None] = cast(Any, self._reader).feed
        # One for all answers: asyncio's own way takes 256 KiB from the system and gives them back for each.
        self._buffer = bytearray(_BUFFER)
        self._transport: asyncio.Transport | None = None
        self._pending: deque[asyncio.Future[Any]] = deque()
        self._unsent: list[bytes] = []
        self._watch: asyncio.TimerHandle | None = None
        self._quiet_since = self._loop.time()
        self._read_since = 0

    def ask(self, *command: Argument) -> asyncio.Future[Any]:
        """Sends a command and returns its answer. Raises `hiredis.ReplyError`, or ConnectionError on a closed link."""
        answer: asyncio.Future[Any] = self._loop.create_future()
        if not self.is_up:
            answer.set_exception(ConnectionResetError("the connection ended"))
            return answer
        self._send(pack_command(command))
        if not self._pending:
            self._quiet_since, self._read_since = self._loop.time(), 0
            if self._watch is None:
                self._watch = self._loop.call_later(self._timeout, self._look)
        self._pending.append(answer)
        return answer

    def hear(self, hear: Hear) -> None:
        self._hear = hear

    def tell(self, *command: Argument) -> None:
        """Sends a command whose answer, if any, comes to `hear`."""
        if self.is_up:
            self._send(pack_command(command))

    def abort(self) -> None:
        """Closes the connection at once; pending calls fail."""
        if self._transport is None:
            self.closed.set()
        else:
            self._transport.abort()
        self._end(ConnectionResetError("the connection was given up"))

    def _send(self, packed: bytes) -> None:
        transport = cast(asyncio.Transport, self._transport)
        if not self._pending and not self._unsent:
            transport.write(packed)
            return
        # Others are under way: what is asked in this turn of the loop goes out together.
        if not self._unsent:
            self._loop.call_soon(self._flush)
        self._unsent.append(packed)

    def _flush(self) -> None:
        unsent, self._unsent = self._unsent, []
        if self.is_up:
            cast(asyncio.Transport, self._transport).write(b"".join(unsent))

    def _look(self) -> None:
        """Closes the link if the server owes answers and has been silent, or too slow, for too long."""
        self._watch = None
        if not self._pending or not self.is_up:
            return
        left = self._quiet_since + self._timeout - self._loop.time()
        if left <= 0:
            self._end(TimeoutError(f"no answer within {self._timeout:g} s"))
            cast(asyncio.Transport, self._transport).abort()
        else:
            self._watch = self._loop.call_later(left, self._look)

    def _end(self, error: Exception) -> None:
        self.is_up = False
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
        pending, self._pending = self._pending, deque()
        for answer in pending:
            if not answer.done():
                answer.set_exception(error)
        self.ended.set()

    # What asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.is_up = True

    def get_buffer(self, sizehint: int) -> bytearray:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        reader, pending = self._reader, self._pending
        self._read_since += nbytes
        is_alive = self._read_since >= SIGN_OF_LIFE
        try:
            self._feed(self._buffer, 0, nbytes)
            while (reply := reader.gets()) is not NOT_ENOUGH:
                is_alive = True
                if self._hear is not None:
                    self._hear(reply)
                    continue
                answer = pending.popleft()
                if answer.done():
                    continue
                if isinstance(reply, hiredis.ReplyError):
                    answer.set_exception(reply)
                else:
                    answer.set_result(reply)
        except (hiredis.ProtocolError, IndexError) as error:
            # Whatever speaks there is no Redis, or no longer in step.
            self._end(ConnectionError(f"not understood: {error}"))
            cast(asyncio.Transport, self._transport).abort()
        if is_alive:
            self._quiet_since, self._read_since = self._loop.time(), 0

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(ConnectionResetError(str(exc) if exc else "the server closed the connection"))
        self.closed.set()
