"""Named pipes beside a file, by which processes wake each other.

A listener makes one pipe for each topic and queue; a writer puts one byte into each pipe of what it changed. The folder
is deleted when nobody listens.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import time
from collections import defaultdict
from collections.abc import Iterable
from itertools import count
from typing import Final, TypeAlias

from ...store.values import Topic
from .errors import reraise_from_signal

Key: TypeAlias = tuple[str, str]
"""Topic and queue."""

_numbers: Final = count()
_process_name = secrets.token_hex(4)
_SETTLED: Final = 100_000_000
"""Nanoseconds after which a folder's time of change is trusted: its clock ticks in milliseconds, and hides changes."""


def _rename_process() -> None:
    # Not the process id: containers that share a volume have the same ones.
    global _process_name  # noqa: PLW0603 - a forked child is a process of its own
    _process_name = secrets.token_hex(4)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_rename_process)


class Pipe:
    """The reading end of a listener's pipe. Raises OSError where there are no named pipes."""

    def __init__(self, folder: str, topic: Topic, queue: str) -> None:
        self._folder = folder
        name = f"{topic}@{queue}@{_process_name}-{next(_numbers)}"
        self._path = os.path.join(folder, name)  # noqa: PTH118 - text paths are enough
        unopened = os.path.join(folder, f".{name}")  # noqa: PTH118
        self.fd = -1
        _make(folder, unopened)
        try:
            # For reading and writing: without a writer it would always be at its end.
            self.fd = os.open(unopened, os.O_RDWR | os.O_NONBLOCK)
            # Named only now: a writer removes pipes that nobody has open.
            os.rename(unopened, self._path)  # noqa: PTH104
        except OSError:
            self.close()
            raise

    @property
    def is_named(self) -> bool:
        """True if other processes can find it: somebody may have deleted it."""
        return os.path.lexists(self._path)

    def empty(self) -> bool:
        """Empties the pipe; True if there was anything in it."""
        try:
            return bool(os.read(self.fd, 65_536))
        except BlockingIOError:
            return False

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
        with contextlib.suppress(OSError):
            os.unlink(self._path)  # noqa: PTH108
        with contextlib.suppress(OSError):
            os.rmdir(self._folder)  # noqa: PTH106


def _make(folder: str, path: str) -> None:
    for _ in range(10):
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder, 0o700)  # noqa: PTH102
        try:
            os.mkfifo(path, 0o600)
        except FileNotFoundError:
            # The last listener of another process has just removed the folder.
            continue
        except AttributeError:
            raise OSError(errno.ENOSYS, "this system has no named pipes") from None
        return
    raise OSError(errno.ENOENT, "the folder disappears again and again", folder)


class RemoteWaker:
    """The writing ends of all pipes of other processes. Used by one thread at a time."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._seen = -1
        self._pipes: dict[Key, list[str]] = {}
        self._open: dict[str, int] = {}

    def wake(self, keys: Iterable[Key]) -> None:
        """Wakes the listeners whose pipes were there at the last `look`."""
        if self._pipes:
            for key in keys:
                for name in self._pipes.get(key, ()):
                    self._wake(name)

    def close(self) -> None:
        for fd in self._open.values():
            os.close(fd)
        self._open.clear()
        self._pipes = {}
        self._seen = -1

    def look(self) -> bool:
        """Lists the pipes again if the folder changed; True if the list changed."""
        if not self._pipes and not os.access(self._folder, os.F_OK):
            # Nearly always so in a process that adds without workers: cheaper than an exception.
            return False
        try:
            changed = os.stat(self._folder).st_mtime_ns  # noqa: PTH116
            if changed == self._seen:
                return False
            names = os.listdir(self._folder)  # noqa: PTH208
        except OSError as error:
            reraise_from_signal(error)
            had_any = bool(self._pipes)
            self.close()
            return had_any
        self._seen = changed if time.time_ns() - changed > _SETTLED else -1
        pipes: defaultdict[Key, list[str]] = defaultdict(list)
        for name in names:
            topic, _, rest = name.partition("@")
            queue, _, owner = rest.rpartition("@")
            if topic and queue and not name.startswith(".") and not owner.startswith(_process_name):
                pipes[topic, queue].append(name)
        before, self._pipes = self._pipes, dict(pipes)
        for name in self._open.keys() - set(names):
            os.close(self._open.pop(name))
        return before != self._pipes

    def _wake(self, name: str) -> None:
        try:
            fd = self._open.get(name)
            if fd is None:
                fd = self._open[name] = self._pipe(name)
            os.write(fd, b"!")
        except BlockingIOError:
            # Full: its reader has enough to wake up to.
            return
        except OSError as error:
            reraise_from_signal(error)
            if error.errno in (errno.ENXIO, errno.EPIPE):
                self._remove(name)

    def _pipe(self, name: str) -> int:
        path = os.path.join(self._folder, name)  # noqa: PTH118
        fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
        if not stat.S_ISFIFO(os.fstat(fd).st_mode):
            os.close(fd)
            raise OSError(errno.EINVAL, "not a pipe", path)
        return fd

    def _remove(self, name: str) -> None:
        """Deletes the pipe of a process that died."""
        fd = self._open.pop(name, None)
        if fd is not None:
            os.close(fd)
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(self._folder, name))  # noqa: PTH108, PTH118
        self._seen = -1
