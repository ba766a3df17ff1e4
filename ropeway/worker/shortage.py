"""Where the system gives no more threads or processes: jobs wait for one that comes free, and are not failed for it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from .service import log

TRY_EVERY: Final = 1.0
"""Seconds between two tries, if none comes free."""


class Shortage:
    def __init__(self) -> None:
        self._came_free = asyncio.Event()
        self._is_told = False

    def came_free(self) -> None:
        self._came_free.set()

    def is_over(self) -> None:
        self._is_told = False

    async def wait(self, error: Exception, what: str) -> None:
        """Returns when it is worth another try."""
        if not self._is_told:
            log.warning("%s: jobs wait for %s to come free", error, what)
        self._is_told = True
        self._came_free.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(TRY_EVERY):
                await self._came_free.wait()
