"""The one thread of a process that writes to a file: a whole round of calls per transaction."""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import apsw

from ...errors import RopewayError, StoreUnavailable
from ...job.instants import Instant
from .adding import Bundles, add, all_created
from .begin import begin
from .clock import Clock
from .failures import ends_connection, let_through, typed
from .identity import Watch
from .lane import LOG, BlockingCall, Call, Lane, deliver, nothing
from .taking import Intake
from .transaction import Known, Transaction
from .wake import Standing, Wakes
from .wal import Wal

CHECKPOINT_AT: Final = 4_000
"""Pages that all processes wrote to the -wal (16 MB), after which they go back into the file."""
MAPPED: Final = 512 * 1024 * 1024
"""Bytes of the file that are read as memory, without a call for each page."""
_COURTESY: Final = 0.000_3
_COMPANY_LASTS: Final = 1.0
_RESTART_WAIT: Final = 100
_BRIEFLY: Final = 0.01
_LAST_PATIENCE: Final = 1.0
_OWN: Final = (apsw.Error, RopewayError, MemoryError)


class TakingIn(BlockingCall[None]):
    """Nobody waits for it, and it is tried again if it fails: it must not keep others waiting."""

    __slots__ = ()


class Round:
    """What is under way. A signal can break off a round in the main thread, at any step; the next one ends it."""

    __slots__ = ("calls", "taken", "tx")

    def __init__(self, calls: Sequence[Call[Any]]) -> None:
        self.calls = calls
        self.taken: list[Standing] = []
        self.tx: Transaction | None = None
        """None as long as nothing was done, and after a failure."""


class Writer:
    """Calls in, answers out after the commit; nothing is answered that is not stored."""

    def __init__(
        self,
        path: str,
        connect: Callable[[], apsw.Connection],
        clock: Clock,
        wakes: Wakes,
        watch: Watch,
        patience: float,
        *,
        has_inbox: bool,
    ) -> None:
        self._path, self._connect, self._clock, self._wakes = path, connect, clock, wakes
        self._patience = patience
        self._intake = Intake(path, clock, wakes, watch, self._take_in_after) if has_inbox else None
        self._connection: apsw.Connection | None = None
        self._checked_at = 0
        self.is_in_doubt = False
        """A sync failed, and the system will not try again to write those pages: they must be written elsewhere."""
        self._own_version = -1
        self._known = Known()
        self._seen = 0
        """Up to where somebody saw the inbox taken in."""
        self._last_company = -_COMPANY_LASTS
        self._watch = watch
        self._wal = Wal(path)
        self._unfinished: Round | None = None
        self.lane = Lane("writer", path, self._round, self._let_go)

    def use(self, connection: apsw.Connection) -> None:
        """Takes over a connection that was opened elsewhere."""
        # It waits by itself, see `_begin`.
        connection.set_busy_timeout(0)
        self._connection = connection
        # The -wal is synced after the commit, see `Wal`.
        connection.pragma("synchronous", "NORMAL")
        self._wal.attend(connection)
        self._own_version = -1
        self._seen = 0
        if self._intake is not None:
            # On a disk of this machine's own: a million waiting jobs are more than the cache holds.
            connection.pragma("mmap_size", MAPPED)
            self._intake.open(connection)

    def has_more(self, taken: int | None = None) -> bool:
        """On any thread: whether the inbox may have jobs behind that position, or behind the newest known here."""
        if self._intake is None:
            return False
        if taken is not None:
            self._seen = taken
        return self._intake.has_more(max(self._seen, self._known.taken or 0))

    def take_in_here(self, tx: Transaction) -> None:
        """Into a transaction on another thread."""
        if self._intake is not None:
            self._intake.take_in_here(tx)

    def _round(self, calls: Sequence[Call[Any]]) -> None:
        if self._unfinished is not None:
            self._mend(self._unfinished)
        if self._intake is not None and all(call.verb in (add, nothing) for call in calls):
            adds = [call for call in calls if call.verb is add]
            if adds and self._leave(adds, self._intake):
                # The others may have to wait for other writers.
                calls = [call for call in calls if call.verb is nothing]
        others = [call for call in calls if not isinstance(call, TakingIn)]
        if others:
            self._transact(others)
        if self._intake is not None and len(others) < len(calls):
            if not others and self._intake.has_own:
                self._empty_inbox(_BRIEFLY)
            self._intake.was_tried()

    def _leave(self, calls: Sequence[Call[Any]], intake: Intake) -> bool:
        """In the inbox, if that is enough for all of them; otherwise nothing has happened."""
        if not all(call.is_durable for call in calls):
            return False
        if not intake.leave([(call.arguments[0], call.now) for call in calls]):
            return False
        try:
            intake.sync()
        except StoreUnavailable as error:
            for call in calls:
                call.error = error
        else:
            for call in calls:
                call.answer = all_created(call.arguments[0])
        deliver(calls)
        return True

    def leave_here(self, bundles: Bundles, now: Instant | None) -> bool:
        """On a thread of the caller's, who need not wait for the writer; False if he must."""
        return self._intake is not None and self._intake.leave_here(bundles, now)

    def _take_in_after(self, seconds: float) -> None:
        if not seconds:
            self.lane.put(TakingIn(nothing, ()))
        elif not self.lane.has_later:
            self.lane.put_later(seconds, TakingIn(nothing, ()))

    def _transact(self, calls: Sequence[Call[Any]]) -> None:
        this = self._unfinished = Round(calls)
        try:
            self._commit(this)
        except Exception as error:
            if _is_foreign(error):
                raise
            # Whatever else it is, it belongs to the callers.
            self._fail(this, error)
        self._finish(this)
        if this.tx is not None and self._connection is not None:
            self._checkpoint(self._connection)
            self._yield_to_others()

    def _mend(self, broken_off: Round) -> None:
        if self._connection is not None and self._connection.in_transaction:
            self._fail(broken_off, InterruptedError(errno.EINTR, "a signal broke it off"))
        # It may have been committed without being noted: what is known is read anew.
        self._own_version = -1
        for standing in broken_off.taken:
            standing.is_taken = True
        self._finish(broken_off)

    def _finish(self, done: Round) -> None:
        """Tells everybody. That may happen twice, but not never."""
        # Jobs that were waited for, first of all.
        hasty: list[Call[Any]] = [*done.taken]
        patient: list[Call[Any]] = []
        for call in done.calls:
            must_last = done.tx is not None and call.is_durable and call.error is None
            (patient if must_last else hasty).append(call)
        served = {standing.listener for standing in done.taken if standing.answer}
        woken = set(self._wakes.near(done.tx.wakes)) if done.tx else set()
        deliver(hasty, woken - served)
        if done.tx is not None:
            self._wakes.ring_far(done.tx.wakes)
        if patient:
            self._sync(patient)
            deliver(patient)
        self._unfinished = None

    def _sync(self, calls: Sequence[Call[Any]]) -> None:
        try:
            self._wal.sync()
        except OSError as error:
            # Then the next round will sync.
            let_through(error)
            self.is_in_doubt = True
            self._disconnect()
            for call in calls:
                call.error = typed(self._path, error)
        else:
            if self._intake is not None:
                self._intake.free(self._known.taken)

    def _commit(self, this: Round) -> None:
        calls = this.calls
        self._watch.look(thorough=any(call.is_thorough for call in calls))
        connection = self._connected()
        self._begin(connection)
        if any(call.is_durable for call in calls):
            self._wal.make_room()
        is_awaited = self._wakes.is_awaited if len(calls) == 1 else None
        tx = this.tx = Transaction(connection, self._clock, self._known, is_awaited)
        if self._intake is not None:
            self._intake.open_at_last(connection)
            self._intake.take_in(tx)
        if len(calls) == 1:
            _do_or_raise(tx, calls[0])
        else:
            for call in calls:
                self._do_apart(connection, tx, call)
        claimable = [key for key in tx.wakes if key[0] == "jobs"]
        for _, queue in claimable:
            self._wakes.take(queue, this.taken)
        for standing in this.taken:
            # If not even this can be done, something is wrong with the file, and nothing can.
            _do_or_raise(tx, standing)
        tx.flush()
        self._wakes.warn_far(claimable)
        connection.execute("COMMIT")
        self._own_version = connection.data_version()
        tx.committed()

    def _do_apart(self, connection: apsw.Connection, tx: Transaction, call: Call[Any]) -> None:
        """Does a call so that its failure undoes nothing of the calls beside it."""
        mark = tx.mark()
        connection.execute("SAVEPOINT call")
        _do(tx, call)
        if call.error is not None:
            if not connection.in_transaction or ends_connection(call.error):
                # The whole transaction is lost, and every call of the round fails with it.
                raise call.error
            connection.execute("ROLLBACK TO call")
            tx.go_back(mark)
            call.error = typed(self._path, call.error)
        connection.execute("RELEASE call")

    def _begin(self, connection: apsw.Connection) -> None:
        begin(connection, self._patience)
        if connection.data_version() != self._own_version:
            self._known = Known()
            self._last_company = time.monotonic()

    def _yield_to_others(self) -> None:
        """A writer with more to do lets the others in, if there are any: SQLite's lock has no queue."""
        if self.lane.is_waiting and time.monotonic() - self._last_company < _COMPANY_LASTS:
            time.sleep(_COURTESY)

    def _connected(self) -> apsw.Connection:
        if self._connection is None:
            self.use(self._connect())
        assert self._connection is not None
        if self.is_in_doubt:
            # All that was committed goes into the file itself, and that is synced.
            self._connection.set_busy_timeout(_RESTART_WAIT)
            try:
                self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_FULL)
            finally:
                self._connection.set_busy_timeout(0)
            self.is_in_doubt = False
        return self._connection

    def _checkpoint(self, connection: apsw.Connection) -> None:
        """Writes the -wal back now and then, after the answers are out.

        Not by SQLite itself, which would keep an error from us: the next one begins anew with all that this one did.
        """
        pages = self._wal.pages
        if pages < self._checked_at:
            # It was emptied, and is written from its beginning again.
            self._checked_at = 0
        if pages - self._checked_at < CHECKPOINT_AT or self._watch.is_damaged():
            return
        self._checked_at = pages
        try:
            log, _ = connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            if log > 2 * CHECKPOINT_AT:
                # Others write all the time, so it is never empty by itself: wait a moment for the end of all readers.
                connection.set_busy_timeout(_RESTART_WAIT)
                connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_RESTART)
        except (apsw.BusyError, apsw.LockedError):
            # Others read or checkpoint: the alarm of `Watch` says when that lasts too long.
            return
        except apsw.Error as error:
            LOG.warning("%s: its -wal could not be written back (%s); it is tried again", self._path, error)
            self._recover(error)
        finally:
            if self._connection is connection:
                connection.set_busy_timeout(0)

    def _fail(self, this: Round, error: Exception) -> None:
        # Before the rollback: what is undone must not be answered, even if this is broken off.
        this.tx = None
        for call in (*this.calls, *this.taken):
            call.answer = None
        error = self._recover(error)
        for call in (*this.calls, *this.taken):
            # Its own error says more than that of the round.
            call.error = typed(self._path, call.error or error)

    def _recover(self, error: Exception) -> Exception:
        """Brings the connection into order, or drops it; the error that says most."""
        connection = self._connection
        if connection is not None:
            try:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
            except apsw.Error as worse:
                error = error if ends_connection(error) else worse
        self._watch.saw(error)
        if ends_connection(error):
            self._disconnect()
        return error

    def _let_go(self) -> None:
        """Closing the last connection of a file writes its -wal back and removes it."""
        if self._unfinished is not None:
            self._mend(self._unfinished)
        if self._connection is not None and self._intake is not None and self._intake.has_unfreed:
            self._empty_inbox(_LAST_PATIENCE)
        self._disconnect()
        self._wakes.close()

    def _empty_inbox(self, longest: float) -> None:
        """Unless others write for longer: then the jobs stay there for whoever writes next."""
        patience, self._patience = self._patience, min(self._patience, longest)
        try:
            self._transact([BlockingCall(nothing, ())])
        finally:
            self._patience = patience

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._wal.close()
            if self._intake is not None:
                self._intake.close()
            self._watch.close(connection)


def _do(tx: Transaction, call: Call[Any]) -> None:
    tx.start_call(call.now)
    try:
        call.answer = call.verb(tx, *call.arguments)
    except Exception as error:
        if _is_foreign(error):
            raise
        call.error = error


def _do_or_raise(tx: Transaction, call: Call[Any]) -> None:
    _do(tx, call)
    if call.error is not None:
        raise call.error


def _is_foreign(error: Exception) -> bool:
    """Whether a signal handler may have raised it, between two steps of the main thread: a TimeoutError, say."""
    return threading.current_thread() is threading.main_thread() and not isinstance(error, _OWN)
