"""Asking a server to give up a statement that nobody waits for any more."""

from __future__ import annotations

import asyncio
from typing import Final

from psycopg import pq
from psycopg.errors import Error

PATIENCE: Final = 5.0
"""Seconds after which it is left at that: the server did not answer before either."""
_READING: Final = pq.PollingStatus.READING
_WRITING: Final = pq.PollingStatus.WRITING


class Interruption:
    """A connection of its own that says it, driven by the loop: libpq's other ways hold up the whole process meanwhile.

    Without libpq 17 or newer nothing is said.
    """

    def __init__(self, pgconn: pq.abc.PGconn) -> None:
        self._loop = asyncio.get_running_loop()
        self._fd: int | None = None
        self._end: asyncio.TimerHandle | None = None
        try:
            self._cancel = pgconn.cancel_conn()
            self._cancel.start()
        except Error:
            return
        self._end = self._loop.call_later(PATIENCE, self._finish)
        self._step()

    def _step(self) -> None:
        self._forget_socket()
        try:
            status = self._cancel.poll()
            if status in (_READING, _WRITING):
                self._fd = fd = self._cancel.socket
                watch = self._loop.add_reader if status == _READING else self._loop.add_writer
                watch(fd, self._step)
                return
        except Error:
            pass
        self._finish()

    def _forget_socket(self) -> None:
        # It may be another one each time.
        if self._fd is not None:
            self._loop.remove_reader(self._fd)
            self._loop.remove_writer(self._fd)
            self._fd = None

    def _finish(self) -> None:
        self._forget_socket()
        if self._end is not None:
            self._end.cancel()
        self._cancel.finish()
