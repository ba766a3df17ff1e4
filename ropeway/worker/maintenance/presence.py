"""The record by which `queue.workers()` knows a worker, and the orders that others give it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from ...client.workers import WORKER_RECORDS, Order, WorkerInfo, read_orders, write_worker
from ...errors import StoreRefused
from ...job.instants import Milliseconds
from ...store.contract import Store
from ..service import Service, log, until_answered

PRESENCE_INTERVAL: Final = 10.0
PRESENCE_LASTING: Final[Milliseconds] = 30_000
"""After so long without a refresh the record expires."""
ORDERS_INTERVAL: Final = 2.0
"""Seconds after which it looks again for an order."""


class Presence(Service):
    """Writes the worker's record, and refreshes it before it expires; lets the worker obey orders."""

    def __init__(
        self, store: Store, describe: Callable[[], WorkerInfo], obey: Callable[[Order], None] = lambda _: None
    ) -> None:
        self._store = store
        self._describe = describe
        self._obey = obey
        self._obeyed = ""
        """The id of the last order."""
        self._write_at = 0.0
        self._is_refused = False

    async def begin(self) -> None:
        """Writes the first record: a worker that has started is visible."""
        await until_answered(lambda _: self._write(), "presence")

    async def step(self) -> None:
        await asyncio.sleep(ORDERS_INTERVAL)
        if await self._look_for_orders():
            # Also if that fails now: those who wait for it are told as soon as possible.
            self._write_at = 0.0
        if time.monotonic() >= self._write_at:
            await self._write()

    async def _look_for_orders(self) -> bool:
        if self._is_refused:
            return False
        worker = self._describe()
        try:
            order = (await read_orders(self._store, worker.id)).get(worker.id)
        except StoreRefused:
            # Behind an older server, whose workers may not read them.
            self._is_refused = True
            return False
        if order is None or order.id == self._obeyed or not order.is_for(worker):
            return False
        self._obeyed = order.id
        log.info("told to %s", order.order)
        self._obey(order.order)
        return True

    async def _write(self) -> None:
        await write_worker(self._store, self._describe(), PRESENCE_LASTING)
        self._write_at = time.monotonic() + PRESENCE_INTERVAL

    async def withdraw(self) -> None:
        await self._store.forget(WORKER_RECORDS, self._describe().id)
