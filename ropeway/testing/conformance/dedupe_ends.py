"""When a dedupe key is free again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from msgspec.structs import replace

from ...job.dedupe import MODES, DedupeMode
from ...job.retention import NOT_AT_ALL
from ...job.states import FINAL, State
from ...store.contract import Store
from ...store.values import Added, KeyHolder, StallRules
from ..arrange import claim_one, is_gone, read
from ..factories import (
    DAY,
    ELSEWHERE,
    LOCK,
    NOW,
    QUEUE,
    SECOND,
    complete,
    fail,
    keyed,
    new_flow,
    new_job,
    retry,
)
from .cases import for_each
from .held_keys import holder, offer

Ending = Callable[[Store], Awaitable[object]]


async def _complete(store: Store) -> object:
    return await store.settle(QUEUE, [complete(await claim_one(store))], now=NOW)


async def _fail(store: Store) -> object:
    return await store.settle(QUEUE, [fail(await claim_one(store))], now=NOW)


async def _complete_and_drop(store: Store) -> object:
    return await store.settle(QUEUE, [complete(await claim_one(store), keep=NOT_AT_ALL)], now=NOW)


async def _cancel(store: Store) -> object:
    return await store.cancel(QUEUE, ["holder"], now=NOW)


async def _remove(store: Store) -> object:
    return await store.remove(QUEUE, ["holder"], now=NOW)


async def _remove_running(store: Store) -> object:
    await claim_one(store)
    return await store.remove(QUEUE, ["holder"], force=True, now=NOW)


async def _clean(store: Store) -> object:
    return await store.clean(QUEUE, "waiting", now=NOW)


async def _obliterate(store: Store) -> object:
    await store.obliterate(QUEUE, now=NOW)
    return await store.configure(QUEUE, pause=False, now=NOW)


async def _give_up(store: Store) -> object:
    await claim_one(store)
    return await store.tick(QUEUE, StallRules(on_stalled="fail"), now=NOW + LOCK)


ENDINGS: Final[dict[str, Ending]] = {
    "completed": _complete,
    "failed": _fail,
    "completed and removed at once": _complete_and_drop,
    "cancelled": _cancel,
    "removed": _remove,
    "removed by force": _remove_running,
    "cleaned": _clean,
    "obliterated": _obliterate,
    "given up": _give_up,
}


class TestDedupeEnds:
    @for_each("mode", [mode for mode in MODES if mode != "throttle"])
    @for_each("state", FINAL)
    async def test_a_final_job_holds_nothing(self, store: Store, state: State, mode: DedupeMode) -> None:
        await holder(store, state)

        [answer] = await offer(store, keyed("key", mode, SECOND, id="new"))

        assert answer == Added("new", "created")

    @for_each("ending", ENDINGS.values(), ids=ENDINGS)
    async def test_however_the_job_goes_the_key_is_free(self, store: Store, ending: Ending) -> None:
        await holder(store, "waiting")

        await ending(store)

        assert await store.dedupe(QUEUE, "key", now=NOW) is None
        [answer] = await offer(store, keyed("key", id="new"), now=NOW + DAY)
        assert answer == Added("new", "created")

    async def test_a_retry_does_not_free_it(self, store: Store) -> None:
        held = await holder(store, "active")

        await store.settle(QUEUE, [retry(held)], now=NOW)

        assert await store.dedupe(QUEUE, "key", now=NOW) == KeyHolder("holder")

    async def test_a_job_that_is_retried_by_hand_does_not_take_it_again(self, store: Store) -> None:
        await holder(store, "failed")
        await offer(store, keyed("key", id="new"))

        await store.retry(QUEUE, ["holder"], now=NOW)
        assert await store.dedupe(QUEUE, "key", now=NOW) == KeyHolder("new")
        await store.remove(QUEUE, ["holder"], now=NOW)

        assert await store.dedupe(QUEUE, "key", now=NOW) == KeyHolder("new")

    async def test_a_job_may_add_the_next_one_with_its_key(self, store: Store) -> None:
        held = await holder(store, "active")

        outcome = replace(complete(held), adds=(keyed("key", id="next"),))
        await store.settle(QUEUE, [outcome], now=NOW)

        assert (await read(store, "next")).state == "waiting"
        assert await store.dedupe(QUEUE, "key", now=NOW) == KeyHolder("next")

    async def test_a_tree_that_is_removed_frees_it(self, store: Store) -> None:
        root, child = new_flow(keyed("key", id="root"), (new_job("child", queue=ELSEWHERE), "remove"))
        await offer(store, root, child)
        held = await claim_one(store, queue=ELSEWHERE)

        await store.settle(ELSEWHERE, [fail(held)], now=NOW)

        assert await is_gone(store, "root")
        assert await store.dedupe(QUEUE, "key", now=NOW) is None

    async def test_a_parent_that_fails_by_a_child_frees_it(self, store: Store) -> None:
        await offer(store, *new_flow(keyed("key", id="root"), new_job("child", queue=ELSEWHERE)))
        held = await claim_one(store, queue=ELSEWHERE)

        await store.settle(ELSEWHERE, [fail(held)], now=NOW)

        assert (await read(store, "root")).state == "failed"
        assert await store.dedupe(QUEUE, "key", now=NOW) is None

    async def test_the_end_of_another_job_does_not_free_it(self, store: Store) -> None:
        await holder(store, "active")
        await offer(store, keyed("key", "debounce", SECOND, id="new"))

        await store.remove(QUEUE, ["holder"], force=True, now=NOW)

        assert await store.dedupe(QUEUE, "key", now=NOW) == KeyHolder("new")
