"""Handles that are in use when their process forks."""

from __future__ import annotations

import asyncio
import gc
import os
import warnings
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

import pytest

from ...errors import StoreClosed
from ...store.contract import Store
from ..arrange import add, claim, read
from ..factories import NOW, QUEUE, new_job
from .listen import calm, hears

T = TypeVar("T")


def in_a_forked_child(call: Callable[[], None]) -> bool:
    """Whether the call ended well there."""
    with warnings.catch_warnings():
        # The warning about threads is what this is about: a child must not hang on what they held.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        status = 1
        try:
            # The loop of the test goes on in the parent alone.
            asyncio._set_running_loop(None)  # noqa: SLF001
            call()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


class TestFork:
    async def test_a_forked_child_has_the_jobs_or_is_told_and_never_hangs(self, store: Store) -> None:
        await add(store, new_job("a"))

        def child() -> None:
            with suppress(StoreClosed):
                assert asyncio.run(_first(store.count(QUEUE)))["waiting"] == 1

        assert in_a_forked_child(child)

    async def test_the_parent_is_not_disturbed(self, store: Store) -> None:
        await add(store, new_job("a"))

        in_a_forked_child(lambda: None)

        assert [job.id for job in await claim(store)] == ["a"]
        await add(store, new_job("b"))

    async def test_a_child_that_uses_and_closes_what_it_inherited_does_not_disturb_the_parent(
        self, store: Store, sibling: Store
    ) -> None:
        listener = store.listen("jobs", [QUEUE])
        await calm(listener)
        [before] = await add(store, new_job("a"))
        assert await hears(listener)
        await calm(listener)

        async def use() -> None:
            with suppress(StoreClosed):
                await store.get(QUEUE, ["a"])
            await store.close()

        def child() -> None:
            listener.close()
            asyncio.run(use())
            gc.collect()

        assert in_a_forked_child(child)
        hearing = asyncio.create_task(hears(listener))
        await sibling.add([[new_job("b")]], now=NOW)

        assert await hearing
        assert await read(store, "a") == before
        listener.close()

    async def test_a_closed_handle_is_closed_in_the_child_too(self, store: Store) -> None:
        await store.count(QUEUE)
        await store.close()

        def child() -> None:
            with pytest.raises(StoreClosed):
                asyncio.run(_first(store.count(QUEUE)))

        assert in_a_forked_child(child)


async def _first(call: Awaitable[T]) -> T:
    return await call
