"""One connection to the server, driven by the event loop through libpq.

A statement runs to its end even if its caller is cancelled, and the link is free again when the answer has come.
psycopg's cursors would interrupt the statement instead, and take several times as long.
"""

from __future__ import annotations

import asyncio
import fcntl
import struct
import termios
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from psycopg import AsyncConnection, pq
from psycopg.adapt import Transformer
from psycopg.errors import Error, OperationalError, error_from_result

from .parameters import Parameter

Row: TypeAlias = tuple[Any, ...]
OnNotification: TypeAlias = Callable[[str], None]
"""Takes the payload of a notification."""

SIGN_OF_LIFE: Final = 65_536
"""Bytes after which the server counts as alive although its answer is not complete."""
_INT: Final = struct.Struct("i")
_BAD: Final = pq.ConnStatus.BAD
_TUPLES: Final = pq.ExecStatus.TUPLES_OK
_DONE: Final = frozenset({_TUPLES, pq.ExecStatus.COMMAND_OK, pq.ExecStatus.EMPTY_QUERY})


class NotSent(OperationalError):
    """The connection ended before the statement was sent, so nothing happened."""


class Statement:
    """SQL with parameters `$1`, `$2` and so on; each link prepares it after its first use."""

    def __init__(self, text: str) -> None:
        self.text: Final = text.encode()
        self.name: Final = f"ropeway_{hash(text) & 0xFFFF_FFFF_FFFF:x}".encode()


class Link:
    """A queue of statements on one connection. It ends with the connection; `LinkPool` opens another."""

    def __init__(self, connection: AsyncConnection, timeout: float) -> None:
        self.is_up = True
        self.prepares = True
        """False behind a pooler, where the next statement may go to another session."""
        self.ended: Final = asyncio.Event()
        """Set when it is no longer up."""
        self._connection = connection
        self._pgconn = connection.pgconn
        self._pgconn.nonblocking = 1
        self._loop = asyncio.get_running_loop()
        self.heard_at = self._loop.time()
        self._read_since = 0
        self._timeout = timeout
        self._loads = Transformer(connection)
        self._prepared: set[bytes] = set()
        self._waiting: deque[tuple[Callable[[], None], asyncio.Future[list[Row]]]] = deque()
        self._answer: asyncio.Future[list[Row]] | None = None
        self._rows: list[Row] = []
        self._error: Error | None = None
        self._watch: asyncio.TimerHandle | None = None
        self._on_notification: OnNotification | None = None
        self._fd = self._pgconn.socket
        self._loop.add_reader(self._fd, self._readable)
        self._writes = False

    @property
    def is_free(self) -> bool:
        return self._answer is None and self.is_up

    @property
    def is_abandoned(self) -> bool:
        """True while the server executes a statement whose caller was cancelled."""
        return self._answer is not None and self._answer.done()

    @property
    def load(self) -> int:
        """Statements that are executed or queued."""
        return len(self._waiting) + (self._answer is not None)

    @property
    def is_idle(self) -> bool:
        """Outside of any transaction."""
        return self._pgconn.transaction_status == pq.TransactionStatus.IDLE

    @property
    def backend(self) -> int:
        """The process id that the server, or a pooler, reported when we connected."""
        return self._pgconn.backend_pid

    def set_listener(self, listener: OnNotification) -> None:
        self._on_notification = listener

    def ask(self, statement: Statement, parameters: Sequence[Parameter] = ()) -> asyncio.Future[list[Row]]:
        """Queues a statement; the future has its rows, or an error of psycopg."""
        values = [value for value, _ in parameters]
        formats = [is_binary for _, is_binary in parameters]
        if statement.name in self._prepared:
            return self._post(lambda: self._pgconn.send_query_prepared(statement.name, values, formats, 1))
        answer = self._post(lambda: self._pgconn.send_query_params(statement.text, values, None, formats, 1))
        if self.prepares:
            # Behind the first of its kind, which does not have to wait for it.
            self._prepared.add(statement.name)
            prepared = self._post(lambda: self._pgconn.send_prepare(statement.name, statement.text))
            prepared.add_done_callback(lambda done: self._forget(statement.name, done))
        return answer

    def run(self, script: str) -> asyncio.Future[list[Row]]:
        """Queues a script without parameters, which is one transaction unless it says otherwise."""
        return self._post(lambda: self._pgconn.send_query(script.encode()))

    def forget_prepared(self) -> None:
        """Prepares statements again: something reset the session."""
        self._prepared.clear()

    def _forget(self, name: bytes, prepared: asyncio.Future[list[Row]]) -> None:
        if prepared.cancelled() or prepared.exception() is not None:
            self._prepared.discard(name)

    def _post(self, send: Callable[[], None]) -> asyncio.Future[list[Row]]:
        answer: asyncio.Future[list[Row]] = self._loop.create_future()
        if not self.is_up:
            answer.set_exception(NotSent("the connection ended"))
        elif self._answer is None:
            self._send(send, answer)
        else:
            self._waiting.append((send, answer))
        return answer

    def _send(self, send: Callable[[], None], answer: asyncio.Future[list[Row]]) -> None:
        self._answer, self._rows, self._error = answer, [], None
        self._note_sign_of_life()
        if self._watch is None:
            self._watch = self._loop.call_later(self._timeout, self._check_silence)
        try:
            send()
            self._flush()
        except Error as error:
            self._end(error)

    def _flush(self) -> None:
        is_left = self._pgconn.flush() == 1
        if is_left and not self._writes:
            self._loop.add_writer(self._fd, self._writable)
        elif self._writes and not is_left:
            self._loop.remove_writer(self._fd)
        self._writes = is_left

    def _writable(self) -> None:
        try:
            self._flush()
        except Error as error:
            self._end(error)

    def _note_sign_of_life(self) -> None:
        self.heard_at, self._read_since = self._loop.time(), 0

    def _readable(self) -> None:
        pgconn = self._pgconn
        try:
            self._read_since += _INT.unpack(fcntl.ioctl(self._fd, termios.FIONREAD, bytes(_INT.size)))[0]
            pgconn.consume_input()
            if self._read_since >= SIGN_OF_LIFE:
                self._note_sign_of_life()
            if self._writes:
                # A server that answers while we still send may wait for us to read.
                self._flush()
            while self._answer is not None and not pgconn.is_busy():
                self._note_sign_of_life()
                result = pgconn.get_result()
                if result is None:
                    self._finish()
                else:
                    self._take(result)
            # Only now: one that came together with an answer is found behind it.
            while (notification := pgconn.notifies()) is not None:
                self._note_sign_of_life()
                if self._on_notification is not None:
                    self._on_notification(notification.extra.decode())
            if pgconn.status == _BAD:
                self._end(OperationalError("the server closed the connection"))
        except (Error, OSError) as error:
            self._end(error if isinstance(error, Error) else OperationalError(str(error)))

    def _take(self, result: Any) -> None:
        if result.status == _TUPLES:
            self._loads.set_pgresult(result)
            self._rows = self._loads.load_rows(0, result.ntuples, tuple)
        elif result.status not in _DONE:
            self._error = error_from_result(result)

    def _finish(self) -> None:
        answer, self._answer = self._answer, None
        if answer is not None and not answer.done():
            if self._error is not None:
                answer.set_exception(self._error)
            else:
                answer.set_result(self._rows)
        while self._waiting and self._answer is None:
            send, answer = self._waiting.popleft()
            if not answer.done():
                self._send(send, answer)

    def _check_silence(self) -> None:
        """Ends the link if the server has owed an answer for too long, or sends it too slowly to ever end."""
        self._watch = None
        if self._answer is None or not self.is_up:
            return
        left = self.heard_at + self._timeout - self._loop.time()
        if left <= 0:
            self._end(OperationalError(f"no answer within {self._timeout:g} s"))
        else:
            self._watch = self._loop.call_later(left, self._check_silence)

    def abort(self) -> None:
        """Closes the connection; pending statements fail."""
        self._end(OperationalError("the connection was given up"))

    def _end(self, error: Error) -> None:
        if not self.is_up:
            return
        self.is_up = False
        self._loop.remove_reader(self._fd)
        if self._writes:
            self._loop.remove_writer(self._fd)
        if self._watch is not None:
            self._watch.cancel()
        self._pgconn.finish()
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(self._error or error)
        self._answer = None
        for _, answer in self._waiting:
            if not answer.done():
                answer.set_exception(NotSent(str(error)))
        self._waiting.clear()
        self.ended.set()
