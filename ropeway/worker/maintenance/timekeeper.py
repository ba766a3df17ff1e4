"""Writing of what a worker has observed about the durations of its jobs."""

from __future__ import annotations

import asyncio
from typing import Final

from ...client.timings import add_timings
from ...store.contract import Store
from ..observations import Observations
from ..service import Service

INTERVAL: Final = 10.0


class Timekeeper(Service):
    """Adds the timings of one queue to those in the store, now and then: a job itself costs no command more."""

    def __init__(self, store: Store, queue: str, observations: Observations) -> None:
        self._store = store
        self._queue = queue
        self._observations = observations

    async def step(self) -> None:
        await asyncio.sleep(INTERVAL)
        await self.write()

    async def write(self) -> None:
        timings = self._observations.take(self._queue)
        if timings is not None:
            await add_timings(self._store, self._queue, timings)
