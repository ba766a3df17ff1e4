"""Listeners that share a connection."""

from __future__ import annotations

import asyncio

from ropeway.store.listening import EarListener
from tests.patience import PATIENCE


class SilentEar:
    """A connection whose server has not confirmed the subscription yet."""

    def add(self, listener: EarListener[SilentEar]) -> None: ...

    def remove(self, listener: EarListener[SilentEar]) -> None: ...


async def test_closing_ends_a_wait_whose_subscription_is_not_confirmed_yet() -> None:
    listener = EarListener(SilentEar, lambda: None, "store://")
    waiting = asyncio.create_task(listener.wait())
    await asyncio.sleep(0)

    listener.close()

    assert await asyncio.wait_for(waiting, PATIENCE) is True
