"""Room in the -wal file, made before it is needed."""

from __future__ import annotations

import os
from typing import Final

import apsw

_FRAME: Final = 4096 + 24
AHEAD: Final = 1024 * 1024


class WalSpace:
    """Keeps the -wal longer than what is written to it.

    A sync of data that lengthen a file waits for the file system's own journal too; over room that is there already
    it takes about half the time. What lies behind the newest frame means nothing to SQLite.
    """

    def __init__(self, path: str) -> None:
        self._wal = f"{path}-wal"
        self.pages = 0
        """How many the -wal holds, whoever wrote them, as of this connection's newest commit."""
        self._used = 0
        self._size = 0

    def attend(self, connection: apsw.Connection) -> None:
        self.pages = self._used = self._size = 0
        connection.set_wal_hook(self._committed)

    def make(self) -> None:
        """Call it inside a write transaction: then nobody else writes there."""
        if self._used + AHEAD // 2 <= self._size:
            return
        try:
            file = os.open(self._wal, os.O_RDWR | os.O_CLOEXEC)
            try:
                self._size = os.fstat(file).st_size
                if self._used + AHEAD // 2 > self._size:
                    self._size += os.pwrite(file, bytes(AHEAD), self._size)
            finally:
                os.close(file)
        except OSError:
            # It is only for speed, and a full disk is better noticed by the commit itself.
            self._size = self._used + AHEAD

    def _committed(self, _: apsw.Connection, __: str, pages: int) -> int:
        self.pages = pages
        self._used = pages * _FRAME
        return apsw.SQLITE_OK
