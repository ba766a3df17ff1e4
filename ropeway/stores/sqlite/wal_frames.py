"""Detects a -wal file that is shorter than the commits it holds.

The header of the -shm says how many frames the -wal has. SQLite itself shortens the -wal, but sets that number to 0
before; and it writes frames before it counts them. So with one header before and after, a size that is too small for it
means that somebody else truncated the file.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import Final

_HEADER: Final = 48
"""Bytes of the header, of which there are two copies; they differ only while it is written."""
_WAL_HEADER: Final = 32
_FRAME_HEADER: Final = 24


_shm_files: Final[dict[tuple[int, int], int]] = {}
_shm_lock = threading.Lock()


class WalFrames:
    """Reads the -wal's size and the -shm's header."""

    def __init__(self, wal: str, shm: str) -> None:
        self._shm = _opened_shm(shm)
        self._wal = os.open(wal, os.O_RDONLY | os.O_CLOEXEC)
        self._size = sys.maxsize
        """The -wal's size when it was last looked at; if it is no smaller now, the header need not be read."""

    def are_missing(self) -> bool:
        # Not by fstat, see `Inbox.is_whole`.
        size = os.lseek(self._wal, 0, os.SEEK_END)
        if size < self._size and self._is_short():
            return True
        self._size = size
        return False

    def _is_short(self) -> bool:
        header = self._header()
        if os.lseek(self._wal, 0, os.SEEK_END) >= _least_size(header):
            return False
        return header[:_HEADER] == header[_HEADER:] and self._header() == header

    def close(self) -> None:
        os.close(self._wal)

    def _header(self) -> bytes:
        return os.pread(self._shm, 2 * _HEADER, 0)


def _least_size(header: bytes) -> int:
    """Size in bytes of a -wal with this header in its -shm."""
    page_size = int.from_bytes(header[14:16], sys.byteorder)
    frames = int.from_bytes(header[16:20], sys.byteorder)
    return _WAL_HEADER + frames * (_FRAME_HEADER + (65536 if page_size == 1 else page_size)) if frames else 0


def _opened_shm(path: str) -> int:
    """A descriptor of the -shm, one for each file in this process.

    It is closed only when the file was deleted: closing any descriptor drops the locks that the process has on it,
    and a connection that was opened meanwhile, by another handle, may need them.
    """
    with _shm_lock:
        for file, descriptor in [*_shm_files.items()]:
            if not os.fstat(descriptor).st_nlink:
                del _shm_files[file]
                os.close(descriptor)
        found = os.stat(path)  # noqa: PTH116 - text paths are enough
        file = found.st_dev, found.st_ino
        if file not in _shm_files:
            _shm_files[file] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        return _shm_files[file]


def reset_after_fork() -> None:
    """A thread of the parent's may have held the lock, and is not here to give it back."""
    global _shm_lock  # noqa: PLW0603 - the descriptors are the process's
    _shm_lock = threading.Lock()
