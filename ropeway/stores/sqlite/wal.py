"""Preallocates the -wal file, and syncs it after commits.

SQLite could sync by itself in each commit, but it would hold the file's write lock meanwhile. Synced after the commit,
other processes go on at once with what was committed, and so do workers of this one; only callers that were promised
durability wait. Frames lie in order, so a later sync makes durable whatever was committed before.
"""

from __future__ import annotations

import os
from typing import Final

import apsw

from .errors import reraise_from_signal

_FRAME: Final = 4096 + 24
AHEAD: Final = 1024 * 1024
sync_file: Final = getattr(os, "fdatasync", os.fsync)


class Wal:
    def __init__(self, path: str) -> None:
        self._path = f"{path}-wal"
        self._file: int | None = None
        self.pages = 0
        """Pages in the -wal, of all processes, as of this connection's newest commit."""
        self._used = 0
        self._size = 0

    def attend(self, connection: apsw.Connection) -> None:
        self.close()
        self.pages = self._used = self._size = 0
        connection.set_wal_hook(self._committed)

    def make_room(self) -> None:
        """Preallocates room behind the newest frame. Call it in a write transaction: then nobody else writes.

        A sync of data that lengthen a file waits for the file system's own journal too; over room that is there already
        it takes about half the time. What lies behind the newest frame means nothing to SQLite.
        """
        if self._used + AHEAD // 2 <= self._size:
            return
        try:
            file = self._opened()
            self._size = os.fstat(file).st_size
            if self._used + AHEAD // 2 > self._size:
                self._size += os.pwrite(file, bytes(AHEAD), self._size)
        except OSError as error:
            reraise_from_signal(error)
            # It is only for speed, and a full disk is better noticed by the commit itself.
            self._size = self._used + AHEAD

    def sync(self) -> None:
        """Returns when all that was committed is on the disk; otherwise raises OSError."""
        sync_file(self._opened())

    def close(self) -> None:
        """Closes the -wal; call it before the connection is closed, which may delete it."""
        file, self._file = self._file, None
        if file is not None:
            os.close(file)

    def _opened(self) -> int:
        if self._file is None:
            self._file = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
        return self._file

    def _committed(self, _: apsw.Connection, __: str, pages: int) -> int:
        self.pages = pages
        self._used = pages * _FRAME
        return apsw.SQLITE_OK
