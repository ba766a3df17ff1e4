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
LAST_RING: Final = 1.0
"""Seconds that closing waits for a server, which may not answer, to take what is owed."""


class Bell:
    def __init__(self, target: Target, lanes: Lanes) -> None:
        self._lanes = lanes
        self._ring = Statement(in_schema("SELECT ropeway.ring($1)", target.schema))
        self._loop = asyncio.get_running_loop()
        self._rang: dict[str, float] = {}
        self._owed: set[str] = set()
        self._owing: set[str] = set()
        """The queues of what is owed."""
        self._ringing: asyncio.Task[None] | None = None

    def may_ring(self, queues: Sequence[str]) -> bool:
        return self._pause_of(queues) <= 0

    def note(self, queues: Sequence[str], wakes: Sequence[str]) -> None:
        """Takes what a call answered: wakes that it made, and those that it was not allowed to make."""
        for wake in wakes:
            if wake.startswith("+"):
                self._rang.update(dict.fromkeys(queues, self._loop.time()))
            else:
                self._owed.add(wake)
                self._owing.update(queues)
        if self._owed and (self._ringing is None or self._ringing.done()):
            self._ringing = asyncio.create_task(self._later())

    def _pause_of(self, queues: Sequence[str] | set[str]) -> float:
        """Seconds until all of them may be woken; not above 0: now."""
        last = max((self._rang.get(queue, 0.0) for queue in queues), default=0.0)
        return last + PAUSE - self._loop.time()

    async def _later(self) -> None:
        while self._owed:
            # Not a whole pause: the last wake was some time ago, and whoever was woken by it is idle again.
            await asyncio.sleep(max(0.0, self._pause_of(self._owing)))
            owed, self._owed = sorted(self._owed), set()
            self._rang.update(dict.fromkeys(self._owing, self._loop.time()))
            self._owing = set()
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
        owed, self._owed = sorted(self._owed), set()
        if owed:
            with suppress(StoreError, TimeoutError):
                async with asyncio.timeout(LAST_RING):
                    await self._lanes.call(self._ring, (texts(owed),))
