"""One open file of the process, shared by its handles: writer, reader, clock and listeners."""

from __future__ import annotations

import os
import threading
import time
from typing import Any, Final, TypeVar

import apsw

from ...errors import StoreRefused
from ...job.instants import Instant
from . import wal_frames
from .adding import Bundles
from .calls import BlockingCall, Call, CallThread, Pause, no_op
from .clock import Clock
from .errors import as_store_error
from .ingest import has_inbox
from .opening import connect, open_file
from .reader import Reader
from .statements import statements
from .target import Target
from .threads import start
from .transaction import Transaction
from .wake import ListenerGroup
from .watching import Watch, identity
from .writer import Writer

T = TypeVar("T")

_NEWEST_INSTANT: Final = statements("queue")["newest_instant"]
_registry: dict[str, SharedFile] = {}
_ending: list[SharedFile] = []
_lock = threading.Lock()
_inherited: list[list[SharedFile]] = []
_open_at_fork: set[tuple[int, int] | None] = set()


class Loan:
    """A connection that is lent to a caller's transaction."""

    def __init__(self) -> None:
        self.connection: apsw.Connection | None = None


class SharedFile:
    """An open file. It counts its handles, and is closed with the last one."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.handles = 0
        self.listeners = ListenerGroup(path)
        self.clock = Clock()
        self._opening = threading.Lock()
        self._target: Target | None = None
        self._watch: Watch | None = None
        self._writer: Writer | None = None
        self._reader: Reader | None = None
        self._pauses: list[Pause] = []
        self._lent: set[Loan] = set()
        self._is_stopped = False
        self.is_paused = False
        """True while the process forks: no connection is open, and none can be opened."""

    @property
    def _threads(self) -> list[CallThread]:
        return [part.thread for part in (self._reader, self._writer) if part is not None]

    @property
    def is_ended(self) -> bool:
        return all(thread.is_ended for thread in self._threads) and not self._lent

    @property
    def has_connections(self) -> bool:
        """True if there may be open connections."""
        return not self.is_paused and (self._opening.locked() or not self.is_ended)

    @property
    def is_open(self) -> bool:
        return self._writer is not None

    def open(self, target: Target) -> None:
        """Opens the file and starts its writer, blocking; a second call does nothing."""
        with self._opening:
            if self._writer is not None:
                return
            self._refuse_after_fork()
            connection = open_file(
                self.path, creates=target.creates, allows_network=target.allows_network, vfs=target.vfs
            )
            try:
                self.clock.saw(connection.execute(_NEWEST_INSTANT).get or 0)
                watch = Watch(self.path)
                self._refuse_two_names(watch)
                watch.opened(connection)
            except BaseException as error:
                connection.close(force=True)
                raise as_store_error(self.path, error) from error
            writer = Writer(
                self.path,
                self._connect,
                self.clock,
                self.listeners,
                watch,
                target.patience,
                has_inbox=has_inbox(self.path, target),
            )
            try:
                writer.use(connection)
            except BaseException as error:
                connection.close(force=True)
                raise as_store_error(self.path, error) from error
            start(writer.thread, self.path)
            self.listeners.write = writer.thread.put
            self._target, self._watch, self._writer = target, watch, writer
            self._stop_late(writer.thread)

    def has_more(self, ingested: int | None = None) -> bool:
        """True if the inbox may have jobs behind this position, or behind the newest that this process knows."""
        return self._writer is not None and self._writer.has_more(ingested)

    def catch_up(self) -> None:
        """Ingests the inbox, blocking until that is committed."""
        if self.has_more():
            self.write_blocking(BlockingCall(no_op, (), is_durable=False))

    def ingest(self, tx: Transaction) -> None:
        """Ingests the inbox in a caller's transaction."""
        assert self._writer is not None, "handles open it first"
        self._writer.ingest_beside(tx)

    def write(self, call: Call[Any]) -> None:
        assert self._writer is not None, "handles open it first"
        self._writer.thread.put(call)

    def write_blocking(self, call: BlockingCall[T]) -> T:
        """Executes a call and waits for it, on a thread without an event loop."""
        assert self._writer is not None, "handles open it first"
        return self._writer.thread.do_blocking(call)

    def put_blocking(self, bundles: Bundles, now: Instant | None) -> bool:
        """Puts jobs into the inbox and syncs it, on the caller's thread; False if they must go through the writer."""
        assert self._writer is not None, "handles open it first"
        return self._writer.put_blocking(bundles, now)

    def read(self, call: Call[Any]) -> None:
        if self._reader is None:
            with self._opening:
                if self._reader is None:
                    assert self._watch is not None, "handles open it first"
                    reader = Reader(self.path, self._connect, self.clock, self._watch)
                    start(reader.thread, self.path)
                    self._reader = reader
        self._reader.thread.put(call)
        self._stop_late(self._reader.thread)

    def lend(self, loan: Loan) -> apsw.Connection:
        """Opens a connection for a caller's transaction. Call `take_back` even if this raised."""
        with self._opening:
            # In this order: a signal in between must leave no connection that nobody knows of.
            self._lent.add(loan)
            loan.connection = self._connect()
            return loan.connection

    def take_back(self, loan: Loan) -> None:
        """Closes a lent connection; a second time does nothing."""
        if loan.connection is not None:
            assert self._watch is not None, "it was open before"
            self._watch.close(loan.connection)
            loan.connection = None
        self._lent.discard(loan)

    def doubt(self) -> None:
        """Notes that a sync failed, perhaps of pages that the writer wrote."""
        assert self._writer is not None, "handles open it first"
        self._writer.is_in_doubt = True

    def stop(self) -> list[CallThread]:
        """Stops the threads, and returns them."""
        self._is_stopped = True
        threads = self._threads
        for thread in threads:
            thread.stop()
        return threads

    def _stop_late(self, thread: CallThread) -> None:
        """Stops a thread that was started while the last handle was closed."""
        if self._is_stopped:
            thread.stop()

    def hold(self, until: float) -> bool:
        """Keeps the file from being opened until `go_on`; False if somebody is still opening it at that time."""
        return self._opening.acquire(timeout=max(0.0, until - time.monotonic()))

    def pause(self, until: float) -> None:
        """Closes all connections of a held file; calls wait. `is_paused` tells if that succeeded in time."""
        self._pauses = [thread.pause() for thread in self._threads]
        reached = all(pause.reached.wait(max(0.0, until - time.monotonic())) for pause in self._pauses)
        # What was lent is in use, and nobody can say for how long.
        self.is_paused = reached and not self._lent

    def go_on(self) -> None:
        self.is_paused = False
        for pause in self._pauses:
            pause.over.set()
        self._opening.release()

    def _connect(self) -> apsw.Connection:
        assert self._watch is not None, "it was open before"
        assert self._target is not None, "and so was this set"
        self._watch.look(thorough=True)
        self._watch.look_at_wal()
        connection = connect(self.path, self._target.vfs)
        self._watch.opened(connection)
        return connection

    def _refuse_after_fork(self) -> None:
        """Refuses a file that was open at the fork: SQLite in the child believes that it holds the parent's locks.

        The process that closes the file last would then delete its -wal, with all that was acknowledged.
        """
        if identity(self.path) in _open_at_fork:
            raise StoreRefused(
                self.path,
                f"it was in use when process {os.getpid()} was forked and could not be closed for that moment, and "
                "SQLite cannot follow into a child: close it before the fork, open it only in the children, or start "
                "them with multiprocessing's spawn",
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


def release(file: SharedFile) -> list[CallThread]:
    """Gives a handle back. Returns the threads that end because it was the last."""
    global _ending  # noqa: PLW0603 - the registry's other half
    with _lock:
        file.handles -= 1
        if file.handles:
            return []
        if _registry.get(file.path) is file:
            del _registry[file.path]
        _ending = [*(other for other in _ending if not other.is_ended), file]
    return file.stop()


def has_files() -> bool:
    """True if this process has a file open, or is closing one."""
    return bool(_registry or _ending)


def hold_all(until: float) -> list[SharedFile] | None:
    """Holds and returns every file that is open or being closed; none can be opened or closed until `let_all_go`.

    None, and nothing is held, if that takes too long.
    """
    held: list[SharedFile] = []
    while _hold(held, until) and _locked(until):
        if all(file in held for file in [*_registry.values(), *_ending]):
            return held
        _lock.release()
    for file in held:
        file.go_on()
    return None


def _hold(held: list[SharedFile], until: float) -> bool:
    if not _locked(until):
        return False
    files = [*_registry.values(), *_ending]
    # Not under the lock: who opens a file takes it too.
    _lock.release()
    for file in files:
        if file not in held:
            if not file.hold(until):
                return False
            held.append(file)
    return True


def _locked(until: float) -> bool:
    return _lock.acquire(timeout=max(0.0, until - time.monotonic()))


def let_all_go(held: list[SharedFile]) -> None:
    for file in held:
        file.go_on()
    _lock.release()


def reset_after_fork() -> None:
    """Resets this module in a forked child. Objects of the parent are kept, and neither used nor closed."""
    global _registry, _ending, _lock
    files = [*_registry.values(), *_ending]
    _open_at_fork.update(identity(file.path) for file in files if file.has_connections)
    _inherited.append(files)
    _registry, _ending, _lock = {}, [], threading.Lock()
    wal_frames.reset_after_fork()
