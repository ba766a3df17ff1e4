"""The reader: executes queries in a thread of their own, so that none waits for a commit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import apsw

from .calls import Call, CallThread, deliver
from .clock import Clock
from .errors import as_store_error, ends_connection
from .transaction import Transaction
from .watching import Watch


class Reader:
    """Executes queries. All of one round see the same snapshot."""

    def __init__(self, path: str, connect: Callable[[], apsw.Connection], clock: Clock, watch: Watch) -> None:
        self._path, self._connect, self._clock, self._watch = path, connect, clock, watch
        self._connection: apsw.Connection | None = None
        self.thread = CallThread("reader", path, self._round, self._close_connection)

    def _round(self, calls: list[Call[Any]]) -> None:
        try:
            self._watch.look()
            if self._connection is None:
                self._connection = self._connect()
            self._connection.execute("BEGIN")
            tx = Transaction(self._connection, self._clock)
            for call in calls:
                self._ask(tx, call)
            self._connection.execute("COMMIT")
        except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to the callers
            if self._connection is not None and self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            for call in calls:
                call.error = as_store_error(self._path, call.error or error)
            self._watch.saw(error)
            if ends_connection(error):
                self._close_connection()
        deliver(calls)

    def _ask(self, tx: Transaction, call: Call[Any]) -> None:
        tx.start_call(call.now)
        try:
            call.answer = call.verb(tx, *call.arguments)
        except apsw.Error:
            raise
        except Exception as error:  # noqa: BLE001 - belongs to the caller
            call.error = error

    def _close_connection(self) -> None:
        if self._connection is not None:
            self._watch.close(self._connection)
            self._connection = None
