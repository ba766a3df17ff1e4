"""The one thread of a process that writes to a file: a whole round of calls per transaction."""

from __future__ import annotations

import asyncio
import random
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, Final

import apsw

from ...errors import StoreCorrupt
from .clock import Clock
from .failures import RECOVERY, ends_connection, typed
from .identity import Watch
from .lane import LOG, Call, Lane, deliver
from .space import WalSpace
from .transaction import Transaction
from .wake import Standing, Wakes

CHECKPOINT_AT: Final = 4_000
"""Pages that all processes wrote to the -wal (16 MB), after which they go back into the file."""
_FIRST_PAUSE: Final = 0.000_1
_LONGEST_PAUSE: Final = 0.002
_COURTESY: Final = 0.000_3
_COMPANY_LASTS: Final = 1.0
_RESTART_WAIT: Final = 100


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
    ) -> None:
        self._path, self._connect, self._clock, self._wakes = path, connect, clock, wakes
        self._patience = patience
        self._connection: apsw.Connection | None = None
        self._is_durable: bool | None = None
        self._checked_at = 0
        self._own_version = -1
        self._last_company = -_COMPANY_LASTS
        self._watch = watch
        self._space = WalSpace(path)
        self.lane = Lane(f"ropeway writer of {path}", self._round, self._let_go)

    def use(self, connection: apsw.Connection) -> None:
        """Takes over a connection that was opened elsewhere."""
        # It waits by itself, see `_begin`.
        connection.set_busy_timeout(0)
        self._connection = connection
        self._space.attend(connection)
        self._is_durable = None

    def _round(self, calls: list[Call[Any]]) -> None:
        done: Transaction | None = None
        taken: list[Standing] = []
        try:
            done = self._commit(calls, taken)
        except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to the callers
            self._fail([*calls, *taken], error)
        tasks: defaultdict[asyncio.AbstractEventLoop, list[Callable[[], None]]] = defaultdict(list)
        # Jobs that were waited for, first of all.
        for waiting in (*taken, *calls):
            tasks[waiting.loop].append(waiting.deliver)
        if done:
            served = {standing.listener for standing in taken if standing.answer}
            for listener in self._wakes.near(done.wakes):
                if listener not in served:
                    tasks[listener.loop].append(listener.wake)
        deliver(tasks)
        if done:
            self._wakes.ring_far(key for key in done.wakes if key[0] != "jobs")
            self._checkpoint()
            self._yield_to_others()

    def _commit(self, calls: Sequence[Call[Any]], taken: list[Standing]) -> Transaction:
        self._watch.look(thorough=any(call.is_thorough for call in calls))
        connection = self._connected(is_durable=any(call.is_durable for call in calls))
        self._begin(connection)
        if self._is_durable:
            self._space.make()
        tx = Transaction(connection, self._clock)
        if len(calls) == 1:
            _do(tx, calls[0])
            if calls[0].error:
                raise calls[0].error
        else:
            for call in calls:
                self._do_apart(connection, tx, call)
        claimable = [key for key in tx.wakes if key[0] == "jobs"]
        for _, queue in claimable:
            taken += self._wakes.take(queue)
        for standing in taken:
            self._do_apart(connection, tx, standing)
        tx.flush()
        # Whoever claims in another process waits for the end of this transaction anyhow, and wakes up meanwhile.
        self._wakes.ring_far(claimable)
        connection.execute("COMMIT")
        self._own_version = connection.data_version()
        return tx

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
        """Waits for other writers, up to the writer's patience."""
        deadline = time.monotonic() + self._patience
        pause = _FIRST_PAUSE
        while True:
            try:
                connection.execute("BEGIN IMMEDIATE")
                break
            except apsw.BusyError:
                if time.monotonic() >= deadline:
                    raise
            # Asked often, because there is little time between two transactions of a busy writer; and at random,
            # because writers that wait equally long would meet again.
            time.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 - no secret
            pause = min(pause * 1.3, _LONGEST_PAUSE)
        if connection.data_version() != self._own_version:
            self._last_company = time.monotonic()

    def _yield_to_others(self) -> None:
        """A writer with more to do lets the others in, if there are any: SQLite's lock has no queue."""
        if self.lane.is_waiting and time.monotonic() - self._last_company < _COMPANY_LASTS:
            time.sleep(_COURTESY)

    def _connected(self, *, is_durable: bool) -> apsw.Connection:
        if self._connection is None:
            self.use(self._connect())
        assert self._connection is not None
        if self._is_durable != is_durable:
            self._connection.pragma("synchronous", "FULL" if is_durable else "NORMAL")
            self._is_durable = is_durable
        return self._connection

    def _checkpoint(self) -> None:
        """Writes the -wal back now and then, after the answers are out.

        Not by SQLite itself, which would keep an error from us: the next one begins anew with all that this one did.
        """
        assert self._connection is not None, "there was a commit"
        pages = self._space.pages
        if pages < self._checked_at:
            # It was emptied, and is written from its beginning again.
            self._checked_at = 0
        if pages - self._checked_at < CHECKPOINT_AT:
            return
        self._checked_at = pages
        try:
            log, _ = self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            if log > 2 * CHECKPOINT_AT:
                # Others write all the time, so it is never empty by itself: wait a moment for the end of all readers.
                self._connection.set_busy_timeout(_RESTART_WAIT)
                self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_RESTART)
        except (apsw.BusyError, apsw.LockedError):
            # Others read or checkpoint: the alarm of `Watch` says when that lasts too long.
            return
        except apsw.Error as error:
            LOG.warning("%s: its -wal could not be written back (%s); it is tried again", self._path, error)
            self._fail((), error)
        finally:
            if self._connection is not None:
                self._connection.set_busy_timeout(0)

    def _fail(self, calls: Sequence[Call[Any]], error: BaseException) -> None:
        connection = self._connection
        if connection is not None:
            try:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
            except apsw.Error as worse:
                error = error if ends_connection(error) else worse
            if ends_connection(error):
                self._disconnect()
        if isinstance(error, apsw.CorruptError | apsw.NotADBError):
            self._watch.refuse(StoreCorrupt, f"the file is damaged ({error}): {RECOVERY}")
        for call in calls:
            call.answer = None
            # Its own error says more than that of the round.
            call.error = typed(self._path, call.error or error)

    def _let_go(self) -> None:
        """Closing the last connection of a file writes its -wal back and removes it."""
        self._disconnect()
        self._wakes.close()

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with self._watch.closing():
                _discard(connection)


def _do(tx: Transaction, call: Call[Any]) -> None:
    tx.start_call(call.now)
    try:
        call.answer = call.verb(tx, *call.arguments)
    except Exception as error:  # noqa: BLE001 - belongs to the caller
        call.error = error


def _discard(connection: apsw.Connection) -> None:
    try:
        connection.close()
    except apsw.Error:
        connection.close(force=True)
