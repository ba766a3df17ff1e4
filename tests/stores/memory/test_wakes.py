from __future__ import annotations

import asyncio

import pytest

from ropeway.errors import StoreClosed
from ropeway.stores.memory import MemoryStore
from ropeway.testing.arrange import add
from ropeway.testing.factories import QUEUE, new_job


async def test_all_who_wait_on_one_listener_hear_a_wake(store: MemoryStore):
    listener = store.listen("jobs", [QUEUE])
    waits = [asyncio.create_task(listener.wait()) for _ in range(3)]
    await asyncio.sleep(0)

    await add(store, new_job())

    assert await asyncio.gather(*waits) == [True] * 3


async def test_a_wake_is_there_at_once(store: MemoryStore):
    listener = store.listen("jobs", [QUEUE])
    await add(store, new_job())

    assert await listener.wait(0) is True
    assert await listener.wait(0) is False


async def test_a_wait_that_is_over_leaves_nothing(store: MemoryStore):
    listener = store.listen("jobs", [QUEUE])
    await listener.wait(0)
    cancelled = asyncio.create_task(listener.wait())
    await asyncio.sleep(0)
    cancelled.cancel()
    await asyncio.gather(cancelled, return_exceptions=True)

    assert listener._waiters == set()


async def test_a_step_that_failed_wakes_nobody(store: MemoryStore):
    listener = store.listen("jobs", [QUEUE])
    with pytest.raises(UnicodeEncodeError):
        await store.add([[new_job("a"), new_job("b", name="\ud800")]])

    assert await listener.wait(0) is False


async def test_closing_ends_a_wait_that_is_under_way(store: MemoryStore):
    handle = store.sibling()
    listener = handle.listen("jobs", [QUEUE])
    waiting = asyncio.create_task(listener.wait())
    await asyncio.sleep(0)

    await handle.close()

    assert await waiting is True
    with pytest.raises(StoreClosed):
        await listener.wait()


async def test_a_closed_listener_is_kept_by_nobody(store: MemoryStore):
    listener = store.listen("jobs", [QUEUE, "parcels"])
    listener.close()
    listener.close()

    with pytest.raises(StoreClosed, match="listen again"):
        await listener.wait()
    assert store._shared is not None
    assert store._shared.hub._listeners == {}
