"""Notices that the store is away while requests wait for it, which stores themselves would wait out."""

from __future__ import annotations

import asyncio
from typing import Final

from ..errors import StoreUnavailable
from ..store.contract import Store
from ..worker.service import Service
from .admission import Admission

INTERVAL: Final = 3.0
"""Seconds between two probes, while requests wait."""
PATIENCE: Final = 5.0
"""Seconds that a probe may take."""


class StoreWatch(Service):
    def __init__(self, store: Store, admission: Admission) -> None:
        self._store = store
        self._admission = admission
        self._away = asyncio.Event()

    async def until_away(self) -> None:
        """Waits until a probe fails."""
        await self._away.wait()

    def away(self) -> StoreUnavailable:
        return StoreUnavailable(self._store.url, "the store does not answer")

    async def step(self) -> None:
        await asyncio.sleep(INTERVAL)
        if not self._admission.waiting:
            return
        try:
            async with asyncio.timeout(PATIENCE):
                await self._store.clock()
        except (StoreUnavailable, TimeoutError):
            # Ends the waits of this moment; those that begin later wait for the next probe.
            self._away.set()
            self._away.clear()
