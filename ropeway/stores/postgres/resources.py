"""Resources of one store handle on one event loop."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from ...errors import StoreError
from ...store import loops
from .notifier import Notifier
from .pool import LinkPool
from .scan_starts import ScanStarts
from .target import Target
from .transaction_connections import TransactionConnections
from .wake_connection import WakeConnection


class PostgresResources(loops.LoopResources):
    """The connections of a handle on one loop, and what notifies and listens through them."""

    def __init__(self, target: Target, scan_starts: ScanStarts, owner: loops.PerLoop[PostgresResources]) -> None:
        super().__init__(owner)
        self.pool = LinkPool(target)
        self.notifier = Notifier(target, self.pool)
        self.wakes = WakeConnection(target, scan_starts)
        self.transaction_connections = TransactionConnections(target)
        self._warming: asyncio.Task[None] | None = None

    def warm_up(self) -> None:
        """Opens and warms up all links in the background, for a worker that will claim soon."""
        if self._warming is None:
            self._warming = self.loop.create_task(self._run_warm_up())

    async def _run_warm_up(self) -> None:
        if not self.closes_with_loop:
            await self.close_with_loop()
        with suppress(StoreError):
            await self.pool.warm_up()

    async def close(self) -> None:
        if self._warming is not None and not self._warming.done():
            self._warming.cancel()
            await asyncio.wait([self._warming])
        await self.wakes.close()
        try:
            await self.notifier.close()
        finally:
            # Also if the caller does not wait any longer: the loop's end would close it again.
            await self.transaction_connections.close()
            await self.pool.close()
