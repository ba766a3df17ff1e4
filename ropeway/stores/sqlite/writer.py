"""The writer: executes all calls of a process in rounds, with one transaction and one sync each (group commit)."""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import apsw

from ...errors import RopewayError, StoreUnavailable
from ...job.instants import Instant
from .adding import Acknowledged, Bundles, add, all_created
from .begin import begin
from .calls import LOG, BlockingCall, Call, CallThread, deliver, no_op
from .clock import Clock
from .errors import as_store_error, ends_connection, reraise_from_signal
from .inbox_keys import keys_of
from .ingest import InboxHandle
from .transaction import Transaction, WriterCache
from .wake import ListenerGroup, ParkedClaim
from .wal import Wal
from .watching import Watch

CHECKPOINT_AT: Final = 4_000
"""Pages that all processes wrote to the -wal (16 MB), after which they go back into the file."""
MAPPED: Final = 512 * 1024 * 1024
"""Bytes of the file that are memory-mapped."""
_YIELD_FOR: Final = 0.000_3
_OTHERS_SEEN_FOR: Final = 1.0
_RESTART_WAIT: Final = 100
_SHORT_PATIENCE: Final = 0.01
_LAST_PATIENCE: Final = 1.0
_OWN: Final = (apsw.Error, RopewayError, MemoryError)


class IngestCall(BlockingCall[None]):
    """A call to ingest the inbox. Nobody waits for it, and it is tried again later if others write."""

    __slots__ = ()


class Round:
    """A round under way. A signal can interrupt it in the main thread, at any step; the next round finishes it."""

    __slots__ = ("calls", "claims", "tx")

    def __init__(self, calls: Sequence[Call[Any]]) -> None:
        self.calls = calls
        self.claims: list[ParkedClaim] = []
        self.tx: Transaction | None = None
        """None before its begin, and after a failure."""


class Writer:
    """Executes calls in transactions, and delivers their answers after the commit."""

    def __init__(
        self,
        path: str,
        connect: Callable[[], apsw.Connection],
        clock: Clock,
        wakes: ListenerGroup,
        watch: Watch,
        patience: float,
        *,
        has_inbox: bool,
    ) -> None:
        self._path, self._connect, self._clock, self._listeners = path, connect, clock, wakes
        self._patience = patience
        self._inbox_handle = InboxHandle(path, clock, wakes, watch, self._ingest_after) if has_inbox else None
        self._connection: apsw.Connection | None = None
        self._checked_at = 0
        self.is_in_doubt = False
        """True after a failed sync: the system does not write those pages again, so they must go elsewhere."""
        self._own_version = -1
        self._cache = WriterCache()
        self._seen = 0
        """Position up to which a reader saw the inbox ingested."""
        self._others_seen_at = -_OTHERS_SEEN_FOR
        self._watch = watch
        self._wal = Wal(path)
        self._unfinished: Round | None = None
        self.thread = CallThread("writer", path, self._round, self._close_connection)

    def use(self, connection: apsw.Connection) -> None:
        """Uses a connection that was opened elsewhere."""
        # It waits by itself, see `_begin`.
        connection.set_busy_timeout(0)
        self._connection = connection
        # The -wal is synced after the commit, see `Wal`.
        connection.pragma("synchronous", "NORMAL")
        self._wal.attend(connection)
        self._own_version = -1
        self._seen = 0
        if self._inbox_handle is not None:
            # On a disk of this machine's own: a million waiting jobs are more than the cache holds.
            connection.pragma("mmap_size", MAPPED)
            self._inbox_handle.open(connection)

    def has_more(self, ingested: int | None = None) -> bool:
        """True if the inbox may have jobs behind this position, or behind the newest known. On any thread."""
        if self._inbox_handle is None:
            return False
        if ingested is not None:
            self._seen = ingested
        return self._inbox_handle.has_more(max(self._seen, self._cache.ingested or 0))

    def ingest_beside(self, tx: Transaction) -> None:
        """Ingests the inbox into a transaction on another thread."""
        if self._inbox_handle is not None:
            self._inbox_handle.ingest_beside(tx)

    def _round(self, calls: Sequence[Call[Any]]) -> None:
        if self._unfinished is not None:
            self._finish_interrupted(self._unfinished)
        if self._inbox_handle is not None and all(call.verb in (add, no_op) for call in calls):
            adds = [call for call in calls if call.verb is add]
            if adds and self._put_into_inbox(adds, self._inbox_handle):
                # The others may have to wait for other writers.
                calls = [call for call in calls if call.verb is no_op]
        others = [call for call in calls if not isinstance(call, IngestCall)]
        if others:
            self._transact(others)
        if self._inbox_handle is not None and len(others) < len(calls):
            if not others and self._inbox_handle.has_own:
                self._empty_inbox(_SHORT_PATIENCE)
            self._inbox_handle.retry_later()

    def _put_into_inbox(self, calls: Sequence[Call[Any]], inbox_handle: InboxHandle) -> bool:
        """Puts the jobs of all calls into the inbox and answers them; False if some may not go there."""
        if not all(call.is_durable for call in calls):
            return False
        jobs = inbox_handle.eligible([(call.arguments[0], call.now) for call in calls])
        if not jobs or not (self._put_keyed(jobs, inbox_handle) if keys_of(jobs) else inbox_handle.put(jobs)):
            return False
        try:
            inbox_handle.sync()
        except StoreUnavailable as error:
            for call in calls:
                call.error = error
        else:
            for call in calls:
                call.answer = all_created(call.arguments[0])
        deliver(calls)
        return True

    def _put_keyed(self, jobs: Sequence[Acknowledged], inbox_handle: InboxHandle) -> bool:
        """Puts jobs of which some have dedupe keys, if these are free; see `inbox_keys.py`."""
        try:
            self._watch.look_at_wal()
            connection = self._connected()
            self._begin(connection, _SHORT_PATIENCE)
            try:
                return inbox_handle.put_keyed(Transaction(connection, self._clock, self._cache), jobs)
            finally:
                connection.execute("ROLLBACK")
        except (apsw.Error, RopewayError, OSError) as error:
            if isinstance(error, OSError):
                reraise_from_signal(error)
            # The transaction that is tried next says what is wrong, or waits for other writers.
            return False

    def put_blocking(self, bundles: Bundles, now: Instant | None) -> bool:
        """Puts jobs into the inbox on the caller's thread; False if they must go through the writer."""
        return self._inbox_handle is not None and self._inbox_handle.put_blocking(bundles, now)

    def _ingest_after(self, seconds: float) -> None:
        if not seconds:
            self.thread.put(IngestCall(no_op, ()))
        elif not self.thread.has_scheduled:
            self.thread.schedule(seconds, IngestCall(no_op, ()))

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

    def _finish_interrupted(self, broken_off: Round) -> None:
        if self._connection is not None and self._connection.in_transaction:
            self._fail(broken_off, InterruptedError(errno.EINTR, "a signal broke it off"))
        # It may have been committed without being noted: the cache is read again.
        self._own_version = -1
        for parked in broken_off.claims:
            parked.is_taken = True
        self._finish(broken_off)

    def _finish(self, done: Round) -> None:
        """Delivers answers and wakes listeners. After an interruption some are delivered twice, which does nothing."""
        # Parked claims first: their workers are idle.
        immediate: list[Call[Any]] = [*done.claims]
        durable: list[Call[Any]] = []
        for call in done.calls:
            must_last = done.tx is not None and call.is_durable and call.error is None
            (durable if must_last else immediate).append(call)
        served = {parked.listener for parked in done.claims if parked.answer}
        woken = set(self._listeners.local_listeners(done.tx.wakes)) if done.tx else set()
        deliver(immediate, woken - served)
        if done.tx is not None:
            self._listeners.wake_remote(done.tx.wakes)
        if durable:
            self._sync(durable)
            deliver(durable)
        self._unfinished = None

    def _sync(self, calls: Sequence[Call[Any]]) -> None:
        try:
            self._wal.sync()
        except OSError as error:
            # Then the next round will sync.
            reraise_from_signal(error)
            self.is_in_doubt = True
            self._disconnect()
            for call in calls:
                call.error = as_store_error(self._path, error)
        else:
            if self._inbox_handle is not None:
                self._inbox_handle.free(self._cache.ingested)

    def _commit(self, this: Round) -> None:
        calls = this.calls
        self._watch.look(thorough=any(call.is_thorough for call in calls))
        self._watch.look_at_wal()
        connection = self._connected()
        self._begin(connection, self._patience)
        if any(call.is_durable for call in calls):
            self._wal.make_room()
        has_parked_claim = self._listeners.has_parked_claim if len(calls) == 1 else None
        tx = this.tx = Transaction(connection, self._clock, self._cache, has_parked_claim)
        if self._inbox_handle is not None:
            self._inbox_handle.reopen_if_unusable(connection)
            self._inbox_handle.ingest(tx)
        if len(calls) == 1:
            _do_or_raise(tx, calls[0])
        else:
            for call in calls:
                self._do_apart(connection, tx, call)
        claimable = [key for key in tx.wakes if key[0] == "jobs"]
        for _, queue in claimable:
            self._listeners.take_parked(queue, this.claims)
        for parked in this.claims:
            # If not even this can be done, something is wrong with the file, and nothing can.
            _do_or_raise(tx, parked)
        tx.flush()
        self._listeners.wake_remote_claimers(claimable)
        connection.execute("COMMIT")
        self._own_version = connection.data_version()
        tx.committed()

    def _do_apart(self, connection: apsw.Connection, tx: Transaction, call: Call[Any]) -> None:
        """Executes a call in a savepoint, so that its failure undoes nothing of the other calls."""
        mark = tx.mark()
        connection.execute("SAVEPOINT call")
        _do(tx, call)
        if call.error is not None:
            if not connection.in_transaction or ends_connection(call.error):
                # The whole transaction is lost, and every call of the round fails with it.
                raise call.error
            connection.execute("ROLLBACK TO call")
            tx.go_back(mark)
            call.error = as_store_error(self._path, call.error)
        connection.execute("RELEASE call")

    def _begin(self, connection: apsw.Connection, patience: float) -> None:
        begin(connection, patience)
        if connection.data_version() != self._own_version:
            self._cache = WriterCache()
            self._others_seen_at = time.monotonic()

    def _yield_to_others(self) -> None:
        """Sleeps a moment if other processes write, too: SQLite's lock has no queue."""
        if self.thread.is_waiting and time.monotonic() - self._others_seen_at < _OTHERS_SEEN_FOR:
            time.sleep(_YIELD_FOR)

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

        SQLite would do it by itself, but hide errors: the next checkpoint begins again with all that this one did.
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
        for call in (*this.calls, *this.claims):
            call.answer = None
        error = self._recover(error)
        for call in (*this.calls, *this.claims):
            # Its own error says more than that of the round.
            call.error = as_store_error(self._path, call.error or error)

    def _recover(self, error: Exception) -> Exception:
        """Rolls back, or closes a broken connection; returns the error that says most."""
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

    def _close_connection(self) -> None:
        """Finishes what is open and closes the connection, which may write the -wal back and delete it."""
        if self._unfinished is not None:
            self._finish_interrupted(self._unfinished)
        if self._connection is not None and self._inbox_handle is not None and self._inbox_handle.has_unfreed:
            self._empty_inbox(_LAST_PATIENCE)
        self._disconnect()
        self._listeners.close()

    def _empty_inbox(self, longest: float) -> None:
        """Ingests the inbox, unless others write for longer: then the next writer does it."""
        patience, self._patience = self._patience, min(self._patience, longest)
        try:
            self._transact([BlockingCall(no_op, ())])
        finally:
            self._patience = patience

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._wal.close()
            if self._inbox_handle is not None:
                self._inbox_handle.close()
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
    """True if a signal handler may have raised it in the main thread: a TimeoutError, for example."""
    return threading.current_thread() is threading.main_thread() and not isinstance(error, _OWN)
