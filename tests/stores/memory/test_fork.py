"""What a forked child finds. Each test forks for real; the child answers by its exit code."""

from __future__ import annotations

import asyncio
import os
import warnings
from collections.abc import Awaitable, Callable

from ropeway.errors import StoreClosed
from ropeway.store.url import connect
from ropeway.stores.memory import MemoryStore
from ropeway.testing.arrange import add
from ropeway.testing.factories import QUEUE, new_job
from tests.patience import PATIENCE


def in_a_child(check: Callable[[], Awaitable[bool]]) -> bool:
    """Whether `check` answers True in a forked child, within seconds."""
    with warnings.catch_warnings():
        # Newer Pythons warn when a process with threads forks; that is what is tested here.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        code = 1
        try:
            asyncio.events._set_running_loop(None)
            code = 0 if asyncio.run(asyncio.wait_for(check(), PATIENCE)) else 1
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


async def refuses(act: Callable[[], Awaitable[object]]) -> bool:
    try:
        await act()
    except StoreClosed as error:
        return "fork" in str(error)
    return False


async def test_an_inherited_handle_is_refused(store: MemoryStore):
    await add(store, new_job("a"))

    assert in_a_child(lambda: refuses(lambda: store.get(QUEUE, ["a"])))
    assert await store.get(QUEUE, ["a"]) != [None]


async def test_an_inherited_handle_is_refused_even_if_its_lock_is_held(store: MemoryStore):
    listener = store.listen("jobs", [QUEUE])
    assert store._shared is not None

    async def check() -> bool:
        listener.close()
        refused = await refuses(listener.wait) and await refuses(lambda: store.count(QUEUE))
        await store.close()
        return refused

    held = store._shared.lock
    done = asyncio.get_running_loop().create_future()

    def fork_while_held() -> None:
        answer = in_a_child(check)
        done.get_loop().call_soon_threadsafe(done.set_result, answer)

    with held:
        await asyncio.to_thread(fork_while_held)
    assert await done


async def test_a_name_means_another_store_in_the_child():
    store = connect("memory://app")
    await add(store, new_job("a"))

    async def check() -> bool:
        fresh = connect("memory://app")
        was_empty = await fresh.get(QUEUE, ["a"]) == [None]
        await add(fresh, new_job("b"))
        return was_empty and await connect("memory://app").get(QUEUE, ["b"]) != [None]

    assert in_a_child(check)
    assert await store.get(QUEUE, ["b"]) == [None]
