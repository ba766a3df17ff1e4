"""Stores that processes share: a forked child goes on with the handle that it inherited."""

from __future__ import annotations

import asyncio

import pytest

from ropeway.errors import StoreClosed
from ropeway.store.contract import Store
from ropeway.testing.arrange import add, read
from ropeway.testing.conformance.forking import in_a_forked_child
from ropeway.testing.factories import QUEUE, new_job
from tests.patience import PATIENCE

from .places import EVERYWHERE

SHARED = [name for name in EVERYWHERE if not name.startswith("memory")]


@pytest.mark.parametrize("new_handle", SHARED, indirect=True)
async def test_parent_and_child_both_go_on(store: Store):
    await add(store, new_job("before"))

    def child() -> None:
        asyncio.run(go_on())

    async def go_on() -> None:
        assert (await store.count(QUEUE))["waiting"] == 1
        await add(store, new_job("of-the-child"))
        await store.close()

    assert in_a_forked_child(child)
    await add(store, new_job("of-the-parent"))
    assert (await store.count(QUEUE))["waiting"] == 3
    assert (await read(store, "of-the-child")).state == "waiting"


@pytest.mark.parametrize("new_handle", SHARED, indirect=True)
async def test_a_listener_of_the_parent_is_refused_in_the_child(store: Store):
    listener = store.listen("events", [QUEUE])
    await listener.wait(0)

    def child() -> None:
        with pytest.raises(StoreClosed, match="listen again"):
            asyncio.run(wait())

    async def wait() -> None:
        async with asyncio.timeout(PATIENCE):
            await listener.wait()

    assert in_a_forked_child(child)
    listener.close()
