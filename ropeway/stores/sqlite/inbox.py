"""A ring of new jobs beside the file, so that adding one needs neither a transaction nor SQLite's write lock.

What is put here is acknowledged once it is on the disk here. Whoever writes to the file next, in any process, takes it
in with the same transaction, which also notes how far it got (`taken`); until then it lies here. Room is used again
when what lay there is on the disk in the file (`freed`).

Positions only grow, and each record carries its own: what is left of an earlier turn of the ring, or of a write that
was cut off, is never mistaken for a record, and the records end where there is none. A sync makes everything last that
was put before, so none of them can be missing before one that was acknowledged.
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

from .lane import LOG
from .wal import sync_file

CAPACITY: Final = 1024 * 1024
MOST_AT_ONCE: Final = 16 * 1024
"""Bytes of one record: more is better written once, straight into the file."""
_HEAD: Final = 4096
_SIZE: Final = _HEAD + CAPACITY
_MAGIC: Final = b"Ropeway inbox 1\n"
_FREED: Final = 64
_mark: Final = struct.Struct("<Q")
_header: Final = struct.Struct("<QII")
"""Position, length, checksum. Records begin at multiples of its size, so it lies in one piece."""
_PAUSE: Final = 0.000_05
_TRIES: Final = 40
"""Some milliseconds in all, about what adding by a transaction takes."""
_OPENING_PAUSE: Final = 0.01
_OPENING_TRIES: Final = 20


class Inbox:
    """Any number of threads may use it, as long as none closes it."""

    def __init__(self, path: str, file: int, taken: int) -> None:
        self._path, self._file = path, file
        self._map = mmap.mmap(file, _SIZE, access=mmap.ACCESS_READ)
        # Nothing is put before what was taken in. `freed` alone would not say so: a power cut may have left it behind,
        # with newer records in the room that it had freed.
        self._tail = taken
        self._lock = threading.Lock()
        self._is_sound = False
        """Whether the file itself is on the disk, and its name."""

    @property
    def is_whole(self) -> bool:
        """Whether it was not truncated. Ask before the map is read: behind the file's end that ends the process."""
        return os.fstat(self._file).st_size >= _SIZE

    @property
    def freed(self) -> int:
        """Up to where the file has everything on the disk."""
        (position,) = _mark.unpack_from(self._map, _FREED)
        return int(position)

    @property
    def has_unfreed(self) -> bool:
        """Whether anything in it may be nowhere else on the disk."""
        freed = self.freed
        return self._find_tail(freed) > freed

    @property
    def tail(self) -> int:
        """Where the records end, as far as is known here."""
        return max(self._tail, self.freed)

    @property
    def unfreed(self) -> int:
        """How many bytes wait to be on the disk in the file, as far as is known here."""
        return self._tail - self.freed

    def has_more(self, taken: int) -> bool:
        """Whether anything was put behind a position. Who stands before `freed` learns that from the file alone."""
        self._refuse_if_truncated()
        return taken < self.freed or self._record(taken) is not None

    def put(self, body: bytes) -> bool:
        """All see it at once; `sync` makes it last. False, and nothing is put, if there is no room or no turn."""
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

    def read(self, taken: int) -> tuple[list[bytes], int]:
        """What was put behind a position, and the position behind that.

        Call it in a write transaction: then nobody else takes in, and nothing behind the position can be freed.
        """
        self._refuse_if_truncated()
        bodies: list[bytes] = []
        while (body := self._record(taken)) is not None:
            bodies.append(body)
            taken += _size(len(body))
        return bodies, taken

    def free(self, taken: int) -> None:
        """The room up to there may be used again: what lay there is on the disk in the file."""
        self._refuse_if_truncated()
        if taken <= self.freed:
            return
        with self._lock:
            try:
                if self._take_turn():
                    # In one step, not by the map: into that Python would write byte by byte, and zeros before.
                    _write_all(self._file, _mark.pack(max(taken, self.freed)), _FREED)
            finally:
                self._end_turn()

    def close(self, *, is_kept: bool = False) -> None:
        """The last one takes the file away, unless it is to be kept, or something in it is nowhere else on the disk."""
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
        """Past what others have put."""
        # Before `freed` there may be newer records than one expects there; from it on they follow each other.
        tail = max(self._tail, freed)
        while (body := self._record(tail)) is not None:
            tail += _size(len(body))
        return tail

    def _record(self, position: int) -> bytes | None:
        """None if there is none, or not yet all of it."""
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
        """Whether this process may change it: others do so for moments, unless they were stopped in one."""
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


def open_inbox(path: str, tag: bytes, taken: Callable[[], int], *, is_patient: bool = True) -> Inbox:
    """The ring of a file that is known by this tag, and that says how much it has taken in. Raises OSError.

    A ring of another file, or of one that was put back from a copy since, begins anew.
    """
    name = f"{path}-inbox"
    for _ in range(_OPENING_TRIES if is_patient else 1):
        file = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            inbox = _join(name, file, tag, taken)
        except BaseException:
            os.close(file)
            raise
        if inbox is not None:
            return inbox
        os.close(file)
        time.sleep(_OPENING_PAUSE)
    raise OSError(errno.EBUSY, "others use it for another file", name)


def _join(name: str, file: int, tag: bytes, taken: Callable[[], int]) -> Inbox | None:
    """None if somebody makes it, or takes it away, just now."""
    is_first = _lock(file, fcntl.F_WRLCK)
    if not is_first and not _lock(file, fcntl.F_RDLCK):
        return None
    if not _is_named(file, name):
        return None
    if is_first:
        # Asked only now, when nobody else has it open to take in from.
        position = taken()
        if not _is_ready(file, tag) or _freed(file) > position:
            if not _may_be_made(file):
                raise OSError(errno.EEXIST, "it is another program's, or a newer Ropeway's", name)
            _share(file, name.removesuffix("-inbox"))
            try:
                _make_ready(file, tag, position)
            except OSError:
                os.unlink(name)  # noqa: PTH108
                raise
        _lock(file, fcntl.F_RDLCK)
    return Inbox(name, file, taken()) if _is_ready(file, tag) else None


def _share(file: int, path: str) -> None:
    """With whoever may use the file itself, as its -wal is: others could not take in what is put here."""
    # If its group cannot be had, it stays the owner's own: the same mode would let others in.
    with contextlib.suppress(PermissionError):
        model = os.stat(path)  # noqa: PTH116 - text paths are enough
        os.fchown(file, -1 if os.geteuid() else model.st_uid, model.st_gid)
        os.fchmod(file, stat.S_IMODE(model.st_mode) & 0o666)


def _may_be_made(file: int) -> bool:
    """Whether it is new, was never finished, or is an old one of ours."""
    head = os.pread(file, len(_MAGIC), 0) if stat.S_ISREG(os.fstat(file).st_mode) else b"?"
    return head == _MAGIC or not head.strip(b"\0")


def _make_ready(file: int, tag: bytes, taken: int) -> None:
    """Empty, with all its room on the disk: what lengthens a file takes longer to sync."""
    os.ftruncate(file, 0)
    marks = (_MAGIC + tag).ljust(_FREED, b"\0") + _mark.pack(taken)
    _write_all(file, bytes(_SIZE - len(marks)), len(marks))
    # Last: it is not ready without them.
    _write_all(file, marks, 0)


def _is_ready(file: int, tag: bytes) -> bool:
    """Whether it is all there, and belongs to the file."""
    return os.fstat(file).st_size == _SIZE and os.pread(file, len(_MAGIC + tag), 0) == _MAGIC + tag


def _freed(file: int) -> int:
    (position,) = _mark.unpack(os.pread(file, _mark.size, _FREED))
    return int(position)


def _is_named(file: int, name: str) -> bool:
    """Whether the file that is open still has its name."""
    try:
        return os.path.samestat(os.fstat(file), os.stat(name))  # noqa: PTH116
    except FileNotFoundError:
        return False


def _lock(file: int, kind: int) -> bool:
    """For as long as the file is open: shared by those who use it, alone for who makes it or takes it away.

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
    """Of a record, with its header."""
    return _header.size + length + -length % _header.size


def _checksum(position: int, body: bytes) -> int:
    return zlib.crc32(body, position & 0xFFFF_FFFF)
