"""Waiting for a free thread or process, when the system starts no more of them: no job fails because of that."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from .service import log

TRY_EVERY: Final = 1.0
"""Seconds between two tries to start one, if none becomes free."""


class Shortage:
    """Signals callers when a thread or process becomes free; logs the shortage once."""

    def __init__(self) -> None:
        self._came_free = asyncio.Event()
        self._is_logged = False

    def came_free(self) -> None:
        self._came_free.set()

    def is_over(self) -> None:
        self._is_logged = False

    async def wait(self, error: Exception, what: str) -> None:
        """Returns when another try is worthwhile."""
        if not self._is_logged:
            log.warning("%s: jobs wait for %s to become free", error, what)
        self._is_logged = True
        self._came_free.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(TRY_EVERY):
                await self._came_free.wait()
