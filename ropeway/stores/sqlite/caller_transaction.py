"""A transaction for a caller's statements and for jobs, on a separate connection.

From its begin to its end nobody else writes to the file, this process included: a write from within the block would
wait for itself, and is refused.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, Concatenate, Final, ParamSpec, TypeAlias, TypeVar

import apsw

from ...errors import InvalidInput, StoreUnavailable
from .authorizer import Authorizer
from .begin import begin
from .calls import BlockingCall
from .errors import as_store_error, ends_connection
from .shared import Loan, SharedFile
from .target import Target
from .threads import start
from .transaction import Transaction

P = ParamSpec("P")
T = TypeVar("T")

Parameters: TypeAlias = Sequence[Any] | Mapping[str, Any]
Row: TypeAlias = tuple[Any, ...]

_INTERRUPT_EVERY: Final = 0.02
_open_here: Final[ContextVar[tuple[CallerTransaction, ...]]] = ContextVar("ropeway_transactions", default=())
"""Transactions that this task or thread began."""


class CallerTransaction:
    """One transaction. Its methods block, and may be called on any thread, one after the other."""

    def __init__(self, file: SharedFile, target: Target) -> None:
        self._file, self._target = file, target
        self._lock = threading.Lock()
        self._loan = Loan()
        self._authorizer: Authorizer | None = None
        self._tx: Transaction | None = None
        self._is_given_up = False

    @property
    def path(self) -> str:
        return self._file.path

    @property
    def is_open(self) -> bool:
        return self._loan.connection is not None

    def enter(self) -> None:
        """Marks the calling task or thread as being inside the transaction."""
        _open_here.set((*(other for other in _open_here.get() if other.is_open), self))

    def begin(self) -> None:
        # Committed before: what was acknowledged can then be looked at from inside the block too.
        self._file.catch_up()
        with self._lock:
            try:
                connection = self._file.lend(self._loan)
                # Synced in the commit: what is answered lasts.
                connection.pragma("synchronous", "FULL" if self._target.is_durable else "NORMAL")
                connection.set_busy_timeout(0)
                begin(connection, self._target.patience, lambda: self._is_given_up)
                self._authorizer = Authorizer(connection)
                self._tx = Transaction(connection, self._file.clock)
                self._file.ingest(self._tx)
            except BaseException as error:
                self._close()
                raise as_store_error(self.path, error) from error
            if self._is_given_up:
                self._close()

    def execute(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        """Executes a statement of the caller's, on the caller's tables."""
        with self._lock:
            connection, _ = self._begun()
            assert self._authorizer is not None, "begun with the rest"
            try:
                with self._authorizer.guarded():
                    return list(connection.execute(sql, parameters))
            except apsw.AuthError:
                raise InvalidInput(
                    "this statement is not for a transaction that is shared: it would begin or end a transaction, "
                    "change settings of the file, or write to tables of Ropeway's"
                ) from None
            except (apsw.FullError, apsw.IOError, apsw.CorruptError) as error:
                raise as_store_error(self.path, error) from error

    def do(self, verb: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Executes a verb of the store; if it fails, nothing of it has happened."""
        with self._lock:
            connection, tx = self._begun()
            # Others may have added by the inbox since it was begun, and come first.
            self._file.ingest(tx)
            mark = tx.mark()
            tx.start_call(None)
            connection.execute("SAVEPOINT verb")
            try:
                answer = verb(tx, *args, **kwargs)
            except BaseException as error:
                if connection.in_transaction and not ends_connection(error):
                    connection.execute("ROLLBACK TO verb")
                    connection.execute("RELEASE verb")
                    tx.go_back(mark)
                raise as_store_error(self.path, error) from error
            connection.execute("RELEASE verb")
            return answer

    def commit(self) -> None:
        with self._lock:
            connection, tx = self._begun()
            try:
                tx.flush()
                connection.execute("COMMIT")
            except BaseException as error:
                if isinstance(error, apsw.IOError):
                    self._file.doubt()
                raise as_store_error(self.path, error) from error
            finally:
                self._close()
        if tx.wakes:
            # By the writer, who serves claims that stand for the jobs, and wakes everybody else.
            self._file.write(BlockingCall(_wake, (tx.wakes,), is_durable=False))

    def give_up(self) -> None:
        """Rolls back in another thread as soon as that is possible."""
        self._is_given_up = True
        start(
            threading.Thread(target=self.roll_back, name=f"ropeway rolls back on {self.path}", daemon=True), self.path
        )

    def roll_back(self) -> None:
        """Rolls back, interrupting a statement that runs; a second time does nothing."""
        self._is_given_up = True
        # Somebody was cancelled, and has left a statement running. Others are refused from now on.
        while self._lock.locked():
            if (connection := self._loan.connection) is not None:
                with suppress(apsw.ConnectionClosedError):
                    connection.interrupt()
            time.sleep(_INTERRUPT_EVERY)
        # By `with`: a signal behind a call of `acquire` would leave nobody to give it back.
        with self._lock:
            self._close()

    def _begun(self) -> tuple[apsw.Connection, Transaction]:
        connection = self._loan.connection
        if connection is None or self._tx is None or self._is_given_up:
            raise InvalidInput("the transaction has ended: use it inside its block")
        if not connection.in_transaction:
            raise StoreUnavailable(self.path, "the transaction was rolled back after an error: begin another")
        return connection, self._tx

    def _close(self) -> None:
        # What was not committed is rolled back with it.
        self._file.take_back(self._loan)
        self._tx = None


def _wake(tx: Transaction, wakes: set[Any]) -> None:
    tx.wakes |= wakes


def is_inside(path: str) -> bool:
    """True if the caller is inside a transaction on the file."""
    return any(own.is_open and own.path == path for own in _open_here.get())


def refuse_to_wait_for_itself(path: str) -> None:
    """Raises if the caller is inside a transaction on the file: a write would wait for that for ever."""
    if is_inside(path):
        raise InvalidInput(
            "this would wait for the transaction that it is made in: give it tx=..., or call it outside the block"
        )
