"""Periodic maintenance of one queue: promotion, stall recovery, expiry, retention and schedules."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

from ...store.contract import Store
from ...store.values import StallRules, Ticked
from ..service import Service
from .firing import fire_schedules


class Ticker(Service):
    """Calls `tick` when the store says the next one is due, when schedules change, and at `interval` in any case."""

    def __init__(
        self,
        store: Store,
        queue: str,
        rules: StallRules,
        interval: float,
        report: Callable[[str, Ticked], None],
        is_stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        """`is_stopping` is asked before each tick: a worker that stops leaves the next ones to others."""
        self._store = store
        self._queue = queue
        self._rules = rules
        self._interval = interval
        self._report = report
        self._is_stopping = is_stopping
        self._listener = store.listen("schedules", [queue])

    async def run(self) -> None:
        try:
            await super().run()
        finally:
            self._listener.close()

    async def step(self) -> None:
        if self._is_stopping():
            await asyncio.Event().wait()
        ticked = await self._store.tick(self._queue, self._rules)
        if ticked.stalled or ticked.given_up or ticked.reset:
            self._report(self._queue, ticked)
        if ticked.schedules:
            await fire_schedules(self._store, self._queue, ticked.schedules, ticked.now)
            return
        if ticked.more:
            return
        pause = self._interval * random.uniform(0.8, 1.2)  # noqa: S311 - spreads load, keeps no secret
        if ticked.next_at is not None:
            pause = min(pause, max(0.001, (ticked.next_at - ticked.now) / 1000))
        await self._listener.wait(pause)
