"""Dedupe keys: what an add does if another job holds its key."""

from __future__ import annotations

from typing import Final

from ...job.dedupe import ACTIONS, MODES, SUPERSEDED, DedupeMode
from ...job.instants import LAST_INSTANT
from ...job.states import OPEN, State
from ...store.contract import Store
from ...store.values import Added, KeyHolder
from ..arrange import add, claim_one, events_of, is_gone, read
from ..factories import (
    ELSEWHERE,
    NOW,
    QUEUE,
    SECOND,
    complete,
    keyed,
)
from .cases import for_each
from .held_keys import holder, offer

CASES: Final = [(mode, state) for mode in MODES for state in OPEN]


class TestDedupe:
    async def test_the_first_job_is_added_and_holds_the_key(self, store: Store) -> None:
        [job] = await add(store, keyed("key", id="a"))

        assert job.extras is not None
        assert job.extras.dedupe is not None
        assert job.extras.dedupe.key == "key"
        assert await store.dedupe(QUEUE, "key", now=NOW) == KeyHolder("a")

    async def test_a_claimed_job_still_says_its_key(self, store: Store) -> None:
        [job] = await add(store, keyed("key", id="a"))

        assert (await claim_one(store)).extras == job.extras

    async def test_keys_are_of_one_queue(self, store: Store) -> None:
        await add(store, keyed("key"))

        [answer] = await offer(store, keyed("key", queue=ELSEWHERE))

        assert answer.verdict == "created"

    async def test_other_keys_are_free(self, store: Store) -> None:
        await add(store, keyed("key"))

        assert [one.verdict for one in await offer(store, keyed("Key"), keyed("other"))] == ["created"] * 2

    @for_each(("mode", "state"), CASES)
    async def test_the_table_says_what_a_second_add_does(self, store: Store, mode: DedupeMode, state: State) -> None:
        before = await holder(store, state)

        [answer] = await offer(store, keyed("key", mode, SECOND, id="new", data='"new"'), now=NOW + 5)

        after = await read(store, "holder")
        match ACTIONS[mode][state]:
            case "find":
                assert (answer, after) == (Added("holder", "deduplicated"), before)
            case "refresh":
                assert answer == Added("holder", "deduplicated")
                assert (after.data, after.state, after.due_at) == ('"new"', state, before.due_at)
            case "postpone":
                assert answer == Added("holder", "deduplicated")
                assert (after.data, after.state, after.due_at) == ('"new"', state, NOW + 5 + SECOND)
            case "follow":
                assert (answer, after) == (Added("new", "created"), before)
                assert (await read(store, "new")).due_at == LAST_INSTANT
            case "replace":
                assert answer == Added("new", "created")
                assert (after.state, after.reason) == ("cancelled", f"{SUPERSEDED}new")
            case "take":
                assert (answer, after) == (Added("new", "created"), before)
                assert await store.dedupe(QUEUE, "key", now=NOW + 5) == KeyHolder("new")
        is_new = answer.verdict == "created"
        assert await is_gone(store, "new") is not is_new

    async def test_it_is_announced_with_the_key_and_the_discarded_id(self, store: Store) -> None:
        await holder(store, "waiting")

        await offer(store, keyed("key", id="new"))

        assert await events_of(store, "deduplicated") == [("holder", {"key": "key", "discarded": "new"})]


class TestReleaseDedupe:
    async def test_the_key_is_free(self, store: Store) -> None:
        await holder(store, "waiting")

        assert await store.release_dedupe(QUEUE, "key", now=NOW)

        assert await store.dedupe(QUEUE, "key", now=NOW) is None
        assert await offer(store, keyed("key", id="new")) == [Added("new", "created")]

    async def test_the_end_of_the_old_job_does_not_free_the_new_ones(self, store: Store) -> None:
        held = await holder(store, "active")
        await store.release_dedupe(QUEUE, "key", now=NOW)
        await offer(store, keyed("key", id="new"))

        await store.settle(QUEUE, [complete(held)], now=NOW)

        assert await store.dedupe(QUEUE, "key", now=NOW) == KeyHolder("new")

    async def test_a_job_that_waits_for_the_holder_goes_on(self, store: Store) -> None:
        await holder(store, "active")
        await offer(store, keyed("key", "keep-last", id="next"))

        await store.release_dedupe(QUEUE, "key", now=NOW)

        assert (await read(store, "next")).state == "waiting"

    async def test_a_free_key_is_answered_false(self, store: Store) -> None:
        assert not await store.release_dedupe(QUEUE, "key", now=NOW)
