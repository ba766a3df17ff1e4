"""The list of queues that may exist. In a cluster it may be on another node than the queues."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Final

from ...errors import StoreUnavailable
from .connection import Commands

log: Final = logging.getLogger("ropeway")

MOMENT: Final = 0.5
"""Seconds that a caller waits for the list; after that its names are listed in the background."""
LONGEST_PAUSE: Final = 2.0


class QueueList:
    """Writes names to the list, in the background if its node is away: adding jobs must not depend on it."""

    def __init__(self, commands: Commands, key: str) -> None:
        self._commands = commands
        self._key = key
        self._missing: dict[str, None] = {}
        self._task: asyncio.Task[None] | None = None
        self._is_late = False

    async def note(self, queues: Iterable[str]) -> bool:
        """Lists queues; returns False if that goes on in the background. Only the first caller waits for it."""
        self._missing.update(dict.fromkeys(queues))
        if self._task is None or self._task.done():
            self._is_late = False
            self._task = asyncio.create_task(self._write(), name="ropeway-redis-queue-list")
            self._task.add_done_callback(lambda task: task.cancelled() or task.exception())
        if not self._is_late:
            await asyncio.wait([self._task], timeout=MOMENT)
        if not self._task.done():
            self._is_late = True
            return False
        self._task.result()
        return True

    async def close(self) -> None:
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _write(self) -> None:
        pause = MOMENT
        while self._missing:
            names = [*self._missing]
            try:
                await self._commands.execute("SADD", self._key, *names)
            except StoreUnavailable as error:
                if not self._is_late:
                    log.warning("queues are not listed yet (%s): trying again", error)
                self._is_late = True
                await asyncio.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE)
                continue
            for name in names:
                self._missing.pop(name, None)
