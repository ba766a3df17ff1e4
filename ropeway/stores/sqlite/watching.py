"""Checks that a file and those beside it are still the ones that were opened."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Final
from weakref import WeakSet

import apsw

from ...errors import StoreCorrupt, StoreRefused
from .calls import LOG
from .errors import RECOVERY, reraise_from_signal
from .wal_frames import WalFrames

CHECK_EVERY: Final = 1.0
WAL_ALARM: Final = 64 * 1024 * 1024
ALARM_EVERY: Final = 60.0
_HEADER: Final = 100
_TRUNCATED_WAL: Final = "its -wal file, which holds the newest jobs, was truncated while it was open"


class Watch:
    """Detects replaced files once a second, or when asked to be thorough, and truncated ones at every look."""

    def __init__(self, path: str, steady: Callable[[], float] = time.monotonic) -> None:
        self._path, self._wal, self._shm, self._inbox = path, f"{path}-wal", f"{path}-shm", f"{path}-inbox"
        self._steady = steady
        self.file = identity(path)
        self._open: WeakSet[apsw.Connection] = WeakSet()
        """Open connections of this process. Weak: one that a signal left without an owner is closed by Python."""
        self._size = size_of(path) or 0
        """Last known size of the file, which only shrinks by a vacuum or by truncation."""
        self._probe: int | None = None
        """Descriptor to read the header by. Closed after the last connection, since that drops SQLite's locks."""
        self._frames: WalFrames | None = None
        """Opened and closed as the probe is."""
        self._wal_file: tuple[int, int] | None = None
        self._shm_file: tuple[int, int] | None = None
        self._inbox_file: tuple[int, int] | None = None
        self._inbox_size = 0
        self._looked_at = self._alarmed_at = -ALARM_EVERY
        self._refusal: tuple[type[StoreRefused], str] | None = None
        self._lock = threading.Lock()

    def opened(self, connection: apsw.Connection) -> None:
        """Registers a connection. While there is one, the -wal and the -shm must stay."""
        with self._lock:
            if not self._open:
                # While this process had none, others may have taken them away and made new ones.
                self._wal_file, self._shm_file = identity(self._wal), identity(self._shm)
            self._open.add(connection)

    def close(self, connection: apsw.Connection) -> None:
        """Closes a connection; a second time does nothing."""
        with self._lock:
            try:
                self._notice_truncation()
                self._notice_truncated_wal()
                if self._is_corrupt or self._is_replaced():
                    keep_wal_on_close(connection)
                # First: a signal in between must not leave a closed one among the open ones.
                self._open.discard(connection)
                connection.close()
            except apsw.Error:
                connection.close(force=True)
            if not self._open:
                self._close_probes()

    def _close_probes(self) -> None:
        probe, self._probe = self._probe, None
        if probe is not None:
            os.close(probe)
        frames, self._frames = self._frames, None
        if frames is not None:
            frames.close()

    def use_inbox(self, *, is_open: bool) -> None:
        """Notes that the -inbox is open, and so must stay, or is closed."""
        with self._lock:
            self._inbox_file = identity(self._inbox) if is_open else None
            self._inbox_size = (size_of(self._inbox) or 0) if is_open else 0

    def look(self, *, thorough: bool = False) -> None:
        """Raises StoreRefused, then and ever after, if somebody replaced, moved, deleted or truncated its files."""
        if self._refusal or self.is_damaged():
            assert self._refusal is not None, "or it is not damaged"
            kind, what = self._refusal
            raise kind(self._path, what)
        now = self._steady()
        if not thorough and now - self._looked_at < CHECK_EVERY:
            return
        self._looked_at = now
        with self._lock:
            self._compare()
            self._alarm(now)

    def look_at_wal(self) -> None:
        """Raises StoreCorrupt, then and ever after, if somebody truncated the -wal. Call it before a transaction."""
        if self.has_truncated_wal():
            assert self._refusal is not None, "or it is not truncated"
            raise StoreCorrupt(self._path, self._refusal[1])

    def has_truncated_wal(self) -> bool:
        with self._lock:
            return self._notice_truncated_wal()

    def _notice_truncated_wal(self) -> bool:
        if self._frames is None and self._open:
            try:
                self._frames = WalFrames(self._wal, self._shm)
            except OSError as error:
                # They were taken away: `look` will say so.
                reraise_from_signal(error)
        if self._frames is None or not self._frames.are_missing():
            return False
        self._refusal = StoreCorrupt, f"{_TRUNCATED_WAL}: {RECOVERY}"
        return True

    def is_damaged(self) -> bool:
        """True if the file was truncated. Costs a stat, and is asked before every write."""
        if not self._is_corrupt:
            size = size_of(self._path)
            # One that is not there was not truncated, but moved or deleted: `look` will say so.
            if size is not None and size < self._size:
                with self._lock:
                    self._notice_truncation()
            elif size is not None:
                self._size = size
        return self._is_corrupt

    def _notice_truncation(self) -> None:
        size = size_of(self._path)
        if self._is_corrupt or size is None or size >= self._size or identity(self._path) != self.file:
            return
        if self._probe is None:
            self._probe = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        size = os.fstat(self._probe).st_size
        if size < _least_size(os.pread(self._probe, _HEADER, 0)):
            what = f"the file was truncated while it was open, from {self._size} bytes to {size}: {RECOVERY}"
            self._refusal = StoreCorrupt, what
        else:
            self._size = size

    def _compare(self) -> None:
        if identity(self._path) != self.file:
            raise self._refuse("the file was moved, deleted or replaced while it was open")
        if self._open:
            self._compare_beside()
        if self._inbox_file and (
            identity(self._inbox) != self._inbox_file or (size_of(self._inbox) or 0) < self._inbox_size
        ):
            raise self._refuse(
                "its -inbox file, which holds new jobs, was deleted, replaced or truncated while it was open"
            )

    def _compare_beside(self) -> None:
        wal = identity(self._wal)
        if self._wal_file and wal != self._wal_file:
            raise self._refuse("its -wal file, which holds the newest jobs, was deleted or replaced while it was open")
        self._wal_file = wal
        shm = identity(self._shm)
        if self._shm_file and shm != self._shm_file:
            # Who opens the file now makes another, and the two would write over each other's commits.
            raise self._refuse("its -shm file, by which processes share it, was deleted or replaced while it was open")
        self._shm_file = shm

    @property
    def _is_corrupt(self) -> bool:
        return self._refusal is not None and self._refusal[0] is StoreCorrupt

    def _is_replaced(self) -> bool:
        """True if another file has the name of one of its files."""
        known = {self._path: self.file, self._wal: self._wal_file, self._shm: self._shm_file}
        return any(file is not None and identity(name) not in (file, None) for name, file in known.items())

    def saw(self, error: Exception) -> None:
        """Notes an error that tells of damage. Call it before closing the connection, which writes the -wal back."""
        if isinstance(error, apsw.IOError):
            # A frame that is not there is an error of the disk, for SQLite.
            self.has_truncated_wal()
        if isinstance(error, apsw.CorruptError | apsw.NotADBError):
            self._refusal = StoreCorrupt, f"the file is damaged ({error}): {RECOVERY}"

    def _refuse(self, what: str) -> StoreRefused:
        what = (
            f"{what}; nothing more is written. Stop every process that uses it, put the file back "
            "(or use a new path), and start again"
        )
        self._refusal = StoreRefused, what
        return StoreRefused(self._path, what)

    def _alarm(self, now: float) -> None:
        size = os.stat(self._wal).st_size if self._open and self._wal_file else 0  # noqa: PTH116 - text paths are enough
        if size > WAL_ALARM and now - self._alarmed_at >= ALARM_EVERY:
            self._alarmed_at = now
            LOG.warning(
                "%s has grown to %d MB: a reader that keeps a transaction open keeps it from being emptied",
                self._wal,
                size // 1024 // 1024,
            )


def size_of(path: str) -> int | None:
    try:
        return os.stat(path).st_size  # noqa: PTH116 - text paths are enough
    except OSError as error:
        reraise_from_signal(error)
        return None


def _least_size(header: bytes) -> int:
    """Size in bytes that a file with this header must have, by its number of pages."""
    if len(header) < _HEADER:
        return _HEADER
    page_size = int.from_bytes(header[16:18], "big")
    return int.from_bytes(header[28:32], "big") * (65536 if page_size == 1 else page_size)


def keep_wal_on_close(connection: apsw.Connection) -> None:
    """Makes closing the connection, if it is the last one, neither write the -wal back nor delete it."""
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)


def identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - text paths are enough
    except OSError as error:
        reraise_from_signal(error)
        return None
    return found.st_dev, found.st_ino
