"""Periodic maintenance of one queue: promotion, stall recovery and retention."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

from ...store.contract import Store
from ...store.values import StallRules, Ticked
from ..service import Service


class Ticker(Service):
    """Calls `tick` when the store says the next one is due, and at `interval` in any case."""

    def __init__(
        self,
        store: Store,
        queue: str,
        rules: StallRules,
        interval: float,
        report: Callable[[str, Ticked], None],
    ) -> None:
        self._store = store
        self._queue = queue
        self._rules = rules
        self._interval = interval
        self._report = report

    async def step(self) -> None:
        ticked = await self._store.tick(self._queue, self._rules)
        if ticked.stalled or ticked.given_up or ticked.reset:
            self._report(self._queue, ticked)
        if ticked.more:
            return
        pause = self._interval * random.uniform(0.8, 1.2)  # noqa: S311 - spreads load, keeps no secret
        if ticked.next_at is not None:
            pause = min(pause, max(0.001, (ticked.next_at - ticked.now) / 1000))
        await asyncio.sleep(pause)
