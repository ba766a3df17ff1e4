"""What the handles of one process share for one file: its writer, its reader, its clock and its listeners."""

from __future__ import annotations

import os
import threading
from typing import Any, Final

import apsw

from ...errors import StoreRefused, StoreUnavailable
from .clock import Clock
from .failures import typed
from .identity import Watch, identity
from .lane import Call, Lane
from .opening import connect, open_file
from .reader import Reader
from .statements import statements
from .target import Target
from .wake import Wakes
from .writer import Writer

_NEWEST_INSTANT: Final = statements("queue")["newest_instant"]
_registry: dict[str, SharedFile] = {}
_lock = threading.Lock()
_inherited: list[dict[str, SharedFile]] = []
_open_at_fork: set[tuple[int, int]] = set()


class SharedFile:
    """Counts its handles, and ends with the last of them."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.handles = 0
        self.wakes = Wakes(path)
        self._clock = Clock()
        self._opening = threading.Lock()
        self._target: Target | None = None
        self._watch: Watch | None = None
        self._writer: Writer | None = None
        self._reader: Reader | None = None

    @property
    def identity(self) -> tuple[int, int] | None:
        """Device and inode of the file, if it is open."""
        return None if self._watch is None else self._watch.file

    @property
    def is_open(self) -> bool:
        return self._writer is not None

    def open(self, target: Target) -> None:
        """Blocks; a second call does nothing."""
        with self._opening:
            if self._writer is not None:
                return
            self._refuse_after_fork()
            connection = open_file(
                self.path, creates=target.creates, allows_network=target.allows_network, vfs=target.vfs
            )
            try:
                self._clock.saw(connection.execute(_NEWEST_INSTANT).get or 0)
                watch = Watch(self.path)
                self._refuse_two_names(watch)
            except BaseException as error:
                connection.close(force=True)
                raise typed(self.path, error) from error
            writer = Writer(self.path, self._connect, self._clock, self.wakes, watch, target.patience)
            writer.use(connection)
            self._start(writer.lane)
            self.wakes.write = writer.lane.put
            self._target, self._watch, self._writer = target, watch, writer

    def write(self, call: Call[Any]) -> None:
        assert self._writer is not None, "handles open it first"
        self._writer.lane.put(call)

    def read(self, call: Call[Any]) -> None:
        if self._reader is None:
            with self._opening:
                if self._reader is None:
                    assert self._watch is not None, "handles open it first"
                    reader = Reader(self.path, self._connect, self._clock, self._watch)
                    self._start(reader.lane)
                    self._reader = reader
        self._reader.lane.put(call)

    def stop(self) -> list[Lane]:
        """Answers the threads that now come to their end."""
        lanes = [part.lane for part in (self._reader, self._writer) if part is not None]
        for lane in lanes:
            lane.stop()
        return lanes

    def _start(self, lane: Lane) -> None:
        try:
            lane.start()
        except RuntimeError as error:
            raise StoreUnavailable(self.path, f"{error}: this process has too many threads") from error

    def _connect(self) -> apsw.Connection:
        assert self._watch is not None, "it was open before"
        assert self._target is not None, "and so was this set"
        self._watch.look(thorough=True)
        return connect(self.path, self._target.vfs)

    def _refuse_after_fork(self) -> None:
        """The child's SQLite believes that it holds the parent's locks, and the kernel knows that it does not.

        Whoever closes the file last would then take the -wal away under it, with all that was acknowledged.
        """
        if identity(self.path) in _open_at_fork:
            raise StoreRefused(
                self.path,
                f"it was open when process {os.getpid()} was forked, and SQLite cannot follow: close it before the "
                "fork, open it only in the children, or start them with multiprocessing's spawn",
            )

    def _refuse_two_names(self, watch: Watch) -> None:
        with _lock:
            others = [file for file in _registry.values() if file is not self and file._watch is not None]  # noqa: SLF001
        for other in others:
            if other._watch is not None and other._watch.file == watch.file:  # noqa: SLF001
                raise StoreRefused(
                    self.path,
                    f"it is the same file as {other.path}, and each name would get a -wal of its own: use one",
                )


def acquire(path: str) -> SharedFile:
    path = os.path.realpath(path)
    with _lock:
        file = _registry.get(path)
        if file is None:
            file = _registry[path] = SharedFile(path)
        file.handles += 1
        return file


def release(file: SharedFile) -> list[Lane]:
    """Answers the threads that end because this was the last handle."""
    with _lock:
        file.handles -= 1
        if file.handles:
            return []
        if _registry.get(file.path) is file:
            del _registry[file.path]
    return file.stop()


def _after_fork() -> None:
    # Connections must not be used, nor closed, in a child: they are kept, and never looked at.
    global _registry, _lock
    _open_at_fork.update(file.identity for file in _registry.values() if file.identity is not None)
    _inherited.append(_registry)
    _registry, _lock = {}, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
