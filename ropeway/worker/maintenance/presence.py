"""The record by which `queue.workers()` knows a worker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import msgspec

from ...client.workers import WORKER_RECORDS, WorkerInfo
from ...store.contract import Store
from ...store.values import Record
from ..service import Service, until_answered

PRESENCE_INTERVAL: Final = 10.0


class Presence(Service):
    """Writes the worker's record, and refreshes it before it expires."""

    def __init__(self, store: Store, describe: Callable[[], WorkerInfo]) -> None:
        self._store = store
        self._describe = describe

    async def begin(self) -> None:
        """Writes the first record: a worker that has started is visible."""
        await until_answered(lambda _: self._write(), "presence")

    async def step(self) -> None:
        await asyncio.sleep(PRESENCE_INTERVAL)
        await self._write()

    async def _write(self) -> None:
        info = self._describe()
        record = Record(WORKER_RECORDS, info.id, msgspec.json.encode(info).decode())
        await self._store.remember(record, lasting=round(PRESENCE_INTERVAL * 3000))

    async def withdraw(self) -> None:
        await self._store.forget(WORKER_RECORDS, self._describe().id)
