"""How tests of stores wait."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable

from tests.patience import PATIENCE


async def until(condition: Callable[[], object]) -> None:
    """Waits for what nobody is told of: what a server has done, for one."""
    async with asyncio.timeout(PATIENCE):
        while True:
            found = condition()
            if await found if inspect.isawaitable(found) else found:
                return
            await asyncio.sleep(0.005)
