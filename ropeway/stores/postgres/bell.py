"""How often one handle wakes others: at once if they have slept, and then at most once in a while."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from ...errors import StoreError
from .connection import Lanes
from .link import Statement
from .parameters import texts
from .statements import in_schema
from .target import Target

PAUSE: Final = 0.01
"""Seconds between two wakes of one queue."""


class Bell:
    def __init__(self, target: Target, lanes: Lanes) -> None:
        self._lanes = lanes
        self._ring = Statement(in_schema("SELECT ropeway.ring($1)", target.schema))
        self._rang: dict[str, float] = {}
        self._owed: set[str] = set()
        self._ringing: asyncio.Task[None] | None = None

    def may_ring(self, queues: Sequence[str]) -> bool:
        now = asyncio.get_running_loop().time()
        return all(now - self._rang.get(queue, 0.0) >= PAUSE for queue in queues)

    def note(self, queues: Sequence[str], wakes: Sequence[str]) -> None:
        """Takes what a call answered: wakes that it made, and those that it was not allowed to make."""
        for wake in wakes:
            if wake.startswith("+"):
                now = asyncio.get_running_loop().time()
                self._rang.update(dict.fromkeys(queues, now))
            else:
                self._owed.add(wake)
        if self._owed and (self._ringing is None or self._ringing.done()):
            self._ringing = asyncio.create_task(self._later())

    async def _later(self) -> None:
        while self._owed:
            await asyncio.sleep(PAUSE)
            owed, self._owed = sorted(self._owed), set()
            try:
                await self._lanes.call(self._ring, (texts(owed),))
            except StoreError:
                # Whoever waits has a safety poll.
                return
            except asyncio.CancelledError:
                self._owed.update(owed)
                raise

    async def close(self) -> None:
        """Rings what is owed: whoever waits would hear of it by a safety poll only."""
        if self._ringing is not None and not self._ringing.done():
            self._ringing.cancel()
            await asyncio.wait([self._ringing])
        if self._owed:
            with suppress(StoreError):
                await self._lanes.call(self._ring, (texts(sorted(self._owed)),))
