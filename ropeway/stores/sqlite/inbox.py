"""The inbox: a ring of new jobs in a file beside the database (`jobs.db-inbox`).

Adding a plain job then needs neither a transaction nor SQLite's write lock, which busy workers hold most of the time
(a dedupe key needs that lock for a moment: `inbox_keys.py`). A job is acknowledged once it is on the disk in the ring.
The next write transaction, of any process, first moves all that is in the ring into the tables ("ingest", `ingest.py`),
and stores in the same transaction how far it got.

      add:  put, then sync                          any write transaction:  ingest
                     |                                         |
                     v                                         v
      +-------------------------------------------------------------------------------+
      |  free room   |  in the tables, not yet synced  |  only here      |  free room  |
      +-------------------------------------------------------------------------------+
                     ^ freed                           ^ ingested        ^ tail
                     (in the ring's head)              (in the database) (found by reading on)

- `tail` is not stored. Positions only grow, and each record carries its own with a checksum: remains of an earlier turn
  of the ring, or of a write that was cut off, are never mistaken for a record, and the ring ends where there is none. A
  sync makes all records before it durable, so none can be missing before one that was acknowledged.
- `ingested` changes with the tables in one commit: no crash can lose or repeat a job.
- `freed` follows when that commit is on the disk. Until then a power cut may undo the commit, and the records are
  ingested again; only behind it may their room be overwritten.

A lock between processes (`flock`) orders puts. Another one, held while the ring is open, is exclusive to create or
delete the file. The database has a random key, which the ring repeats: a ring of another database is not used.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import mmap
import os
import stat
import struct
import threading
import time
import zlib
from collections.abc import Callable
from typing import Final

from .calls import LOG
from .wal import sync_file

CAPACITY: Final = 1024 * 1024
MOST_AT_ONCE: Final = 16 * 1024
"""Bytes of one record; larger ones are cheaper to write once, straight into the file."""
_HEAD: Final = 4096
_SIZE: Final = _HEAD + CAPACITY
_MAGIC: Final = b"Ropeway inbox 1\n"
_FREED: Final = 64
_mark: Final = struct.Struct("<Q")
_header: Final = struct.Struct("<QII")
"""Position, length, checksum. Records begin at multiples of its size, so it lies in one piece."""
_PAUSE: Final = 0.000_05
_TRIES: Final = 40
"""Attempts to get the lock: some milliseconds in all, about as long as a transaction."""
_OPENING_PAUSE: Final = 0.01
_OPENING_TRIES: Final = 20


class Inbox:
    """The open ring. Any number of threads may use it, as long as none closes it."""

    def __init__(self, path: str, file: int, ingested: int) -> None:
        self._path, self._file = path, file
        self._map = mmap.mmap(file, _SIZE, access=mmap.ACCESS_READ)
        # Nothing is put before what was ingested. `freed` alone would not say so: a power cut may have left it behind,
        # with newer records in the room that it had freed.
        self._tail = ingested
        self._lock = threading.Lock()
        self._is_sound = False
        """True once the file itself and its name are on the disk."""

    @property
    def is_whole(self) -> bool:
        """True unless it was truncated. Check before reading the map: a read behind its end kills the process."""
        # Not by fstat: after a look at a file's times, Linux renews them with the next write, and a sync takes longer.
        return os.lseek(self._file, 0, os.SEEK_END) >= _SIZE

    @property
    def freed(self) -> int:
        """Position up to which the database has everything on the disk."""
        (position,) = _mark.unpack_from(self._map, _FREED)
        return int(position)

    @property
    def has_unfreed(self) -> bool:
        """True if it has records that may be nowhere else on the disk."""
        freed = self.freed
        return self._find_tail(freed) > freed

    @property
    def tail(self) -> int:
        """Position behind the last known record."""
        return max(self._tail, self.freed)

    @property
    def unfreed(self) -> int:
        """Known bytes that are not yet on the disk in the database."""
        return self._tail - self.freed

    def has_more(self, ingested: int) -> bool:
        """True if records were put behind a position. Those before `freed` are in the database."""
        self._refuse_if_truncated()
        return ingested < self.freed or self._record(ingested) is not None

    def put(self, body: bytes) -> bool:
        """Appends a record, visible at once and durable after `sync`; False without room, or without the lock."""
        size = _size(len(body))
        if size > MOST_AT_ONCE:
            return False
        with self._lock:
            # Inside: a signal may come behind the turn's beginning. To end one that was not taken does no harm.
            try:
                if not self._take_turn():
                    return False
                self._refuse_if_truncated()
                freed = self.freed
                tail = self._find_tail(freed)
                if tail + size > freed + CAPACITY:
                    return False
                self._write(tail, (_header.pack(tail, len(body), _checksum(tail, body)) + body).ljust(size, b"\0"))
                self._tail = tail + size
            finally:
                self._end_turn()
        return True

    def sync(self) -> None:
        """Returns when all that was put is on the disk; otherwise raises OSError."""
        if self._is_sound:
            sync_file(self._file)
            return
        os.fsync(self._file)
        folder = os.open(os.path.dirname(self._path), os.O_RDONLY)  # noqa: PTH120 - text paths are enough
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        self._is_sound = True

    def read(self, ingested: int) -> tuple[list[bytes], int]:
        """Returns the records behind a position, and the position behind them.

        Call it in a write transaction: then nobody else ingests, and nothing behind the position can be freed.
        """
        self._refuse_if_truncated()
        bodies: list[bytes] = []
        while (body := self._record(ingested)) is not None:
            bodies.append(body)
            ingested += _size(len(body))
        return bodies, ingested

    def free(self, ingested: int) -> None:
        """Frees the room up to a position, when what was there is on the disk in the database."""
        self._refuse_if_truncated()
        if ingested <= self.freed:
            return
        with self._lock:
            try:
                if self._take_turn():
                    # In one step, not by the map: into that Python would write byte by byte, and zeros before.
                    _write_all(self._file, _mark.pack(max(ingested, self.freed)), _FREED)
            finally:
                self._end_turn()

    def close(self, *, is_kept: bool = False) -> None:
        """Closes it. The last process deletes it, unless it is to be kept or has records that are nowhere else."""
        try:
            # Until the file is closed: of two who leave at once, each would find the other still there.
            self._take_turn()
            if is_kept or not self.is_whole or not _lock(self._file, fcntl.F_WRLCK):
                return
            if not self.has_unfreed and _is_named(self._file, self._path):
                os.unlink(self._path)  # noqa: PTH108
        except OSError as error:
            LOG.warning("%s could not be removed (%s); it is empty", self._path, error)
        finally:
            self._map.close()
            os.close(self._file)

    def _refuse_if_truncated(self) -> None:
        if not self.is_whole:
            raise OSError(errno.EIO, "it was truncated", self._path)

    def _find_tail(self, freed: int) -> int:
        """Position behind the last record, including those of other processes."""
        # Before `freed` there may be newer records than one expects there; from it on they follow each other.
        tail = max(self._tail, freed)
        while (body := self._record(tail)) is not None:
            tail += _size(len(body))
        return tail

    def _record(self, position: int) -> bytes | None:
        """Returns the record at a position; None if there is none, or not all of it yet."""
        found, length, checksum = _header.unpack_from(self._map, _HEAD + position % CAPACITY)
        if found != position or not 0 < length <= MOST_AT_ONCE - _header.size:
            return None
        start = (position + _header.size) % CAPACITY
        body = self._map[_HEAD + start : _HEAD + min(start + length, CAPACITY)]
        if start + length > CAPACITY:
            body += self._map[_HEAD : _HEAD + start + length - CAPACITY]
        return body if _checksum(position, body) == checksum else None

    def _write(self, position: int, record: bytes) -> None:
        start = position % CAPACITY
        rest = CAPACITY - start
        _write_all(self._file, record[:rest], _HEAD + start)
        if len(record) > rest:
            _write_all(self._file, record[rest:], _HEAD)

    def _take_turn(self) -> bool:
        """Takes the lock between processes; False if another holds it for long, because it was stopped, say."""
        for _ in range(_TRIES):
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(_PAUSE)
            else:
                return True
        return False

    def _end_turn(self) -> None:
        fcntl.flock(self._file, fcntl.LOCK_UN)


def open_inbox(path: str, key: bytes, ingested: Callable[[], int], *, is_patient: bool = True) -> Inbox:
    """Opens or creates the ring of a database, which has this key and has ingested up to this position. Raises OSError.

    A ring of another database, or of one that was restored from a copy since, is emptied.
    """
    name = f"{path}-inbox"
    for _ in range(_OPENING_TRIES if is_patient else 1):
        file = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            inbox = _join(name, file, key, ingested)
        except BaseException:
            os.close(file)
            raise
        if inbox is not None:
            return inbox
        os.close(file)
        time.sleep(_OPENING_PAUSE)
    raise OSError(errno.EBUSY, "others use it for another file", name)


def _join(name: str, file: int, key: bytes, ingested: Callable[[], int]) -> Inbox | None:
    """Joins the processes that use the ring; None if one of them creates or deletes it just now."""
    is_first = _lock(file, fcntl.F_WRLCK)
    if not is_first and not _lock(file, fcntl.F_RDLCK):
        return None
    if not _is_named(file, name):
        return None
    if is_first:
        # Asked only now, when nobody else has it open to ingest from.
        position = ingested()
        if not _is_ready(file, key) or _freed(file) > position:
            if not _may_be_made(file):
                raise OSError(errno.EEXIST, "it is another program's, or a newer Ropeway's", name)
            _share(file, name.removesuffix("-inbox"))
            try:
                _make_ready(file, key, position)
            except OSError:
                os.unlink(name)  # noqa: PTH108
                raise
        _lock(file, fcntl.F_RDLCK)
    return Inbox(name, file, ingested()) if _is_ready(file, key) else None


def _share(file: int, path: str) -> None:
    """Gives the ring the owner and mode of the database: all who can write the one must be able to ingest the other."""
    # If its group cannot be had, it stays the owner's own: the same mode would let others in.
    with contextlib.suppress(PermissionError):
        model = os.stat(path)  # noqa: PTH116 - text paths are enough
        os.fchown(file, -1 if os.geteuid() else model.st_uid, model.st_gid)
        os.fchmod(file, stat.S_IMODE(model.st_mode) & 0o666)


def _may_be_made(file: int) -> bool:
    """True if it is new, was never finished, or is an old ring."""
    head = os.pread(file, len(_MAGIC), 0) if stat.S_ISREG(os.fstat(file).st_mode) else b"?"
    return head == _MAGIC or not head.strip(b"\0")


def _make_ready(file: int, key: bytes, ingested: int) -> None:
    """Writes an empty ring at full size: writes that lengthen a file take longer to sync."""
    os.ftruncate(file, 0)
    marks = (_MAGIC + key).ljust(_FREED, b"\0") + _mark.pack(ingested)
    _write_all(file, bytes(_SIZE - len(marks)), len(marks))
    # Last: it is not ready without them.
    _write_all(file, marks, 0)


def _is_ready(file: int, key: bytes) -> bool:
    """True if the ring is complete and belongs to the database."""
    return os.fstat(file).st_size == _SIZE and os.pread(file, len(_MAGIC + key), 0) == _MAGIC + key


def _freed(file: int) -> int:
    (position,) = _mark.unpack(os.pread(file, _mark.size, _FREED))
    return int(position)


def _is_named(file: int, name: str) -> bool:
    """True if the open file still has its name."""
    try:
        return os.path.samestat(os.fstat(file), os.stat(name))  # noqa: PTH116
    except FileNotFoundError:
        return False


def _lock(file: int, kind: int) -> bool:
    """Locks the ring while it is open: shared by processes that use it, exclusive to create or delete it.

    Unlike plain POSIX locks these belong to the open file, and closing another one does not drop them.
    """
    try:
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack("hhqqi", kind, os.SEEK_SET, 0, 1, 0))
    except BlockingIOError:
        return False
    return True


def _write_all(file: int, data: bytes, offset: int) -> None:
    written = os.pwrite(file, data, offset)
    while written < len(data):
        written += os.pwrite(file, data[written:], offset + written)


def _size(length: int) -> int:
    """Size of a record with its header."""
    return _header.size + length + -length % _header.size


def _checksum(position: int, body: bytes) -> int:
    return zlib.crc32(body, position & 0xFFFF_FFFF)
