"""What the handles of one process share for one file: its writer, its reader, its clock and its listeners."""

from __future__ import annotations

import os
import threading
import time
from typing import Any, Final, TypeVar

import apsw

from ...errors import StoreRefused
from ...job.instants import Instant
from .adding import Bundles
from .clock import Clock
from .failures import typed
from .identity import Watch, identity
from .lane import BlockingCall, Call, Lane, Rest, nothing
from .opening import connect, open_file
from .reader import Reader
from .statements import statements
from .taking import has_inbox
from .target import Target
from .threads import start
from .transaction import Transaction
from .wake import Wakes
from .writer import Writer

T = TypeVar("T")

_NEWEST_INSTANT: Final = statements("queue")["newest_instant"]
_registry: dict[str, SharedFile] = {}
_ending: list[SharedFile] = []
_lock = threading.Lock()
_inherited: list[list[SharedFile]] = []
_open_at_fork: set[tuple[int, int] | None] = set()


class Loan:
    """A connection for a transaction that is not the writer's."""

    def __init__(self) -> None:
        self.connection: apsw.Connection | None = None


class SharedFile:
    """Counts its handles, and ends with the last of them."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.handles = 0
        self.wakes = Wakes(path)
        self.clock = Clock()
        self._opening = threading.Lock()
        self._target: Target | None = None
        self._watch: Watch | None = None
        self._writer: Writer | None = None
        self._reader: Reader | None = None
        self._rests: list[Rest] = []
        self._lent: set[Loan] = set()
        self._is_stopped = False
        self.is_at_rest = False
        """Whether nothing of it is open, and nothing can be opened, because the process forks."""

    @property
    def _lanes(self) -> list[Lane]:
        return [part.lane for part in (self._reader, self._writer) if part is not None]

    @property
    def is_ended(self) -> bool:
        return all(lane.is_ended for lane in self._lanes) and not self._lent

    @property
    def has_connections(self) -> bool:
        """Whether SQLite may know of it."""
        return not self.is_at_rest and (self._opening.locked() or not self.is_ended)

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
                self.clock.saw(connection.execute(_NEWEST_INSTANT).get or 0)
                watch = Watch(self.path)
                self._refuse_two_names(watch)
                watch.opened(connection)
            except BaseException as error:
                connection.close(force=True)
                raise typed(self.path, error) from error
            writer = Writer(
                self.path,
                self._connect,
                self.clock,
                self.wakes,
                watch,
                target.patience,
                has_inbox=has_inbox(self.path, target),
            )
            try:
                writer.use(connection)
            except BaseException as error:
                connection.close(force=True)
                raise typed(self.path, error) from error
            start(writer.lane, self.path)
            self.wakes.write = writer.lane.put
            self._target, self._watch, self._writer = target, watch, writer
            self._stop_late(writer.lane)

    def has_more(self, taken: int | None = None) -> bool:
        """Whether the inbox has jobs behind that position, or behind what is known here to be in the file."""
        return self._writer is not None and self._writer.has_more(taken)

    def catch_up(self) -> None:
        """Blocks until what the inbox has is in the file, and can be seen there."""
        if self.has_more():
            self.write_here(BlockingCall(nothing, (), is_durable=False))

    def take_in(self, tx: Transaction) -> None:
        """For transactions that are not the writer's."""
        assert self._writer is not None, "handles open it first"
        self._writer.take_in_here(tx)

    def write(self, call: Call[Any]) -> None:
        assert self._writer is not None, "handles open it first"
        self._writer.lane.put(call)

    def write_here(self, call: BlockingCall[T]) -> T:
        """Waits for the answer, on a thread that has no event loop."""
        assert self._writer is not None, "handles open it first"
        return self._writer.lane.do_here(call)

    def leave_here(self, bundles: Bundles, now: Instant | None) -> bool:
        """On a thread that has no event loop: whether the jobs are in the inbox, and on the disk."""
        assert self._writer is not None, "handles open it first"
        return self._writer.leave_here(bundles, now)

    def read(self, call: Call[Any]) -> None:
        if self._reader is None:
            with self._opening:
                if self._reader is None:
                    assert self._watch is not None, "handles open it first"
                    reader = Reader(self.path, self._connect, self.clock, self._watch)
                    start(reader.lane, self.path)
                    self._reader = reader
        self._reader.lane.put(call)
        self._stop_late(self._reader.lane)

    def lend(self, loan: Loan) -> apsw.Connection:
        """Give it back, even if this was broken off."""
        with self._opening:
            # In this order: a signal in between must leave no connection that nobody knows of.
            self._lent.add(loan)
            loan.connection = self._connect()
            return loan.connection

    def take_back(self, loan: Loan) -> None:
        """A second time does nothing."""
        if loan.connection is not None:
            assert self._watch is not None, "it was open before"
            self._watch.close(loan.connection)
            loan.connection = None
        self._lent.discard(loan)

    def doubt(self) -> None:
        """A sync may have failed, of pages that the writer wrote too."""
        assert self._writer is not None, "handles open it first"
        self._writer.is_in_doubt = True

    def stop(self) -> list[Lane]:
        """Answers the threads that now come to their end."""
        self._is_stopped = True
        lanes = self._lanes
        for lane in lanes:
            lane.stop()
        return lanes

    def _stop_late(self, lane: Lane) -> None:
        """If the last handle was closed while another thread opened it, and did not find the lane."""
        if self._is_stopped:
            lane.stop()

    def hold(self, until: float) -> bool:
        """Lets nobody open it before `go_on`; False if it is being opened for longer than that."""
        return self._opening.acquire(timeout=max(0.0, until - time.monotonic()))

    def rest(self, until: float) -> None:
        """Closes what is open, while it is held; calls wait. If that takes too long it is not `is_at_rest`."""
        self._rests = [lane.rest() for lane in self._lanes]
        reached = all(rest.reached.wait(max(0.0, until - time.monotonic())) for rest in self._rests)
        # What was lent is in use, and nobody can say for how long.
        self.is_at_rest = reached and not self._lent

    def go_on(self) -> None:
        self.is_at_rest = False
        for rest in self._rests:
            rest.over.set()
        self._opening.release()

    def _connect(self) -> apsw.Connection:
        assert self._watch is not None, "it was open before"
        assert self._target is not None, "and so was this set"
        self._watch.look(thorough=True)
        connection = connect(self.path, self._target.vfs)
        self._watch.opened(connection)
        return connection

    def _refuse_after_fork(self) -> None:
        """The child's SQLite believes that it holds the parent's locks, and the kernel knows that it does not.

        Whoever closes the file last would then take the -wal away under it, with all that was acknowledged.
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


def release(file: SharedFile) -> list[Lane]:
    """Answers the threads that end because this was the last handle."""
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
    """Whether this process has any open, or is closing one."""
    return bool(_registry or _ending)


def hold_all(until: float) -> list[SharedFile] | None:
    """Every file that this process has open, or is closing; none can be opened or let go until `let_all_go`.

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


def begin_anew() -> None:
    """In a forked child. What the parent had open must be neither used nor closed there: it is kept, and let lie."""
    global _registry, _ending, _lock
    files = [*_registry.values(), *_ending]
    _open_at_fork.update(identity(file.path) for file in files if file.has_connections)
    _inherited.append(files)
    _registry, _ending, _lock = {}, [], threading.Lock()
