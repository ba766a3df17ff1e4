"""The modes of dedupe keys beside the default one."""

from __future__ import annotations

import asyncio

from ...job.dedupe import SUPERSEDED, DedupeRule
from ...job.extras import Extras
from ...store.contract import Store
from ...store.values import Added, Answer, KeyHolder, StallRules
from ..arrange import claim, claim_one, entries, events_of, is_gone, read
from ..factories import (
    ELSEWHERE,
    LOCK,
    NOW,
    QUEUE,
    SECOND,
    claim_request,
    complete,
    keyed,
    new_flow,
    new_job,
    revoked_lock,
)
from .cases import for_each
from .fixtures import NewHandle
from .held_keys import holder, offer


class TestThrottle:
    async def test_the_key_is_held_for_its_time_whatever_becomes_of_the_job(self, store: Store) -> None:
        await holder(store, "completed", "throttle", SECOND)

        again = [(await offer(store, keyed("key", "throttle", SECOND), now=NOW + at))[0] for at in (0, SECOND - 1)]

        assert again == [Added("holder", "deduplicated")] * 2
        assert await store.dedupe(QUEUE, "key", now=NOW) == KeyHolder("holder", NOW + SECOND)

    async def test_then_the_next_one_is_added(self, store: Store) -> None:
        await holder(store, "waiting", "throttle", SECOND)

        [answer] = await offer(store, keyed("key", "throttle", SECOND, id="new"), now=NOW + SECOND)

        assert answer == Added("new", "created")
        assert await store.dedupe(QUEUE, "key", now=NOW + SECOND) == KeyHolder("new", NOW + 2 * SECOND)

    async def test_then_one_of_many_at_once_is_added(self, store: Store, new_handle: NewHandle) -> None:
        await holder(store, "completed", "throttle", SECOND)
        other = new_handle()
        jobs = [keyed("key", "throttle", SECOND, id=f"job-{number}") for number in range(12)]

        found = await asyncio.gather(
            *((store, other)[number % 2].add([[job]], now=NOW + SECOND) for number, job in enumerate(jobs))
        )

        answers = [answer for [[answer]] in found]
        [created] = [answer for answer in answers if answer.verdict == "created"]
        assert {answer.id for answer in answers} == {created.id}
        await other.close()

    async def test_the_end_of_the_first_job_leaves_the_key_of_the_second(self, store: Store) -> None:
        held = await holder(store, "active", "throttle", SECOND)
        await offer(store, keyed("key", "throttle", SECOND, id="new"), now=NOW + SECOND)

        await store.settle(QUEUE, [complete(held)], now=NOW + SECOND)

        assert await store.dedupe(QUEUE, "key", now=NOW + SECOND) == KeyHolder("new", NOW + 2 * SECOND)

    async def test_a_job_removed_before_its_end_frees_it(self, store: Store) -> None:
        await holder(store, "waiting", "throttle", SECOND)

        await store.remove(QUEUE, ["holder"], now=NOW)

        assert await store.dedupe(QUEUE, "key", now=NOW) is None

    async def test_a_job_removed_after_its_end_does_not(self, store: Store) -> None:
        await holder(store, "completed", "throttle", SECOND)

        await store.remove(QUEUE, ["holder"], now=NOW)

        assert await offer(store, keyed("key")) == [Added("holder", "deduplicated")]

    async def test_a_job_of_the_same_id_is_not_added_either(self, store: Store) -> None:
        await holder(store, "completed", "throttle", SECOND)
        await store.remove(QUEUE, ["holder"], now=NOW)

        answers = await offer(store, keyed("key", "throttle", SECOND, id="holder"), new_job("other"), now=NOW + 1)

        assert answers == [Added("holder", "deduplicated"), Added("other", "created")]
        assert await offer(store, keyed("key", id="holder"), now=NOW + 1) == [Added("holder", "deduplicated")]
        assert await is_gone(store, "holder")

    async def test_a_tick_drops_keys_whose_time_is_over(self, store: Store) -> None:
        await holder(store, "completed", "throttle", SECOND)

        await store.tick(QUEUE, StallRules(), now=NOW + SECOND)

        assert await store.dedupe(QUEUE, "key", now=NOW) is None


class TestDebounce:
    async def test_data_of_another_name_is_not_taken(self, store: Store) -> None:
        await holder(store, "delayed")

        await offer(store, keyed("key", "debounce", SECOND, name="other", data='"new"'))

        assert (await read(store, "holder")).data == '"old"'

    async def test_it_runs_once_with_the_newest_data(self, store: Store) -> None:
        for number in range(3):
            new = keyed("key", "debounce", SECOND, id=f"job-{number}", data=str(number), delay=SECOND)
            await offer(store, new, now=NOW + number)

        assert await claim(store, now=NOW + SECOND + 1) == []
        [job] = await claim(store, limit=5, now=NOW + SECOND + 2)

        assert (job.id, job.data) == ("job-0", "2")


class TestKeepLast:
    async def test_one_waits_for_the_end_of_the_active_one(self, store: Store) -> None:
        held = await holder(store, "active", "keep-last")
        await offer(store, keyed("key", "keep-last", id="next", data="1"))
        answers = await offer(store, keyed("key", "keep-last", id="newer", data="2"))

        assert answers == [Added("next", "deduplicated")]
        assert await store.dedupe(QUEUE, "key", now=NOW) == KeyHolder("holder", next="next")
        assert await claim(store) == []
        await store.settle(QUEUE, [complete(held)], now=NOW)

        [job] = await claim(store)
        assert (job.id, job.data) == ("next", "2")
        assert await store.dedupe(QUEUE, "key", now=NOW) == KeyHolder("next")
        assert await events_of(store, "promote") == [("next", {})]

    async def test_the_settle_of_the_active_one_claims_the_next(self, store: Store) -> None:
        held = await holder(store, "active", "keep-last")
        await offer(store, keyed("key", "keep-last", id="next"))

        settled = await store.settle(QUEUE, [complete(held)], claim_request(), now=NOW)

        assert settled.claimed is not None
        assert [job.id for job in settled.claimed.jobs] == ["next"]

    @for_each("force", [False, True])
    async def test_it_goes_on_when_the_active_one_is_cancelled_or_removed(self, store: Store, *, force: bool) -> None:
        await holder(store, "active", "keep-last")
        await offer(store, keyed("key", "keep-last", id="next"))

        if force:
            await store.remove(QUEUE, ["holder"], force=True, now=NOW)
        else:
            await store.cancel(QUEUE, ["holder"], now=NOW)

        assert (await read(store, "next")).state == "waiting"

    async def test_it_goes_on_when_the_active_one_is_given_up(self, store: Store) -> None:
        await holder(store, "active", "keep-last")
        await offer(store, keyed("key", "keep-last", id="next"))

        await store.tick(QUEUE, StallRules(on_stalled="fail"), now=NOW + LOCK)

        assert (await read(store, "next")).state == "waiting"

    async def test_it_goes_on_at_the_end_of_a_job_whose_key_was_held_for_a_time(self, store: Store) -> None:
        held = await holder(store, "active", "throttle", SECOND)
        await offer(store, keyed("key", "keep-last", id="next"))
        assert await store.dedupe(QUEUE, "key", now=NOW) == KeyHolder("holder", next="next")
        await store.tick(QUEUE, StallRules(), now=NOW + SECOND)
        await offer(store, keyed("key", "throttle", SECOND, id="other"), now=NOW + SECOND)

        await store.settle(QUEUE, [complete(held)], now=NOW + SECOND)

        assert await is_gone(store, "other")
        assert (await read(store, "next")).state == "waiting"
        assert await store.dedupe(QUEUE, "key", now=NOW + SECOND) == KeyHolder("next")

    async def test_one_that_was_promoted_by_hand_holds_the_key_afterwards(self, store: Store) -> None:
        held = await holder(store, "active", "keep-last")
        await offer(store, keyed("key", "keep-last", id="next"))
        await store.promote(QUEUE, ["next"], now=NOW)
        running = await claim_one(store)
        await store.settle(QUEUE, [complete(held)], now=NOW)
        assert await store.dedupe(QUEUE, "key", now=NOW) == KeyHolder("next")

        await store.settle(QUEUE, [complete(running)], now=NOW)

        assert await store.dedupe(QUEUE, "key", now=NOW) is None

    async def test_behind_one_that_was_promoted_and_started_another_waits(self, store: Store) -> None:
        held = await holder(store, "active", "keep-last")
        await offer(store, keyed("key", "keep-last", id="next"))
        await store.promote(QUEUE, ["next"], now=NOW)
        running = await claim_one(store)

        assert await offer(store, keyed("key", "keep-last", id="last", data="2")) == [Added("last", "created")]
        newest = await offer(store, keyed("key", "keep-last", id="newest", data="3"))

        assert newest == [Added("last", "deduplicated")]
        assert await store.dedupe(QUEUE, "key", now=NOW) == KeyHolder("next", next="last")
        await store.settle(QUEUE, [complete(held)], now=NOW)
        assert await claim(store) == []
        await store.settle(QUEUE, [complete(running)], now=NOW)
        [job] = await claim(store)
        assert (job.id, job.data) == ("last", "3")
        assert await store.dedupe(QUEUE, "key", now=NOW) == KeyHolder("last")

    async def test_one_that_was_promoted_and_waits_gets_the_newest_data(self, store: Store) -> None:
        await holder(store, "active", "keep-last")
        await offer(store, keyed("key", "keep-last", id="next"))
        await store.promote(QUEUE, ["next"], now=NOW)

        assert await offer(store, keyed("key", "keep-last", data="2")) == [Added("next", "deduplicated")]

        assert (await claim_one(store)).data == "2"

    @for_each("ids", [("holder", "next"), ("next", "holder")])
    async def test_cancelled_with_the_active_one_it_never_waits(self, store: Store, ids: tuple[str, str]) -> None:
        await holder(store, "active", "keep-last")
        await offer(store, keyed("key", "keep-last", id="next"))

        answers = await store.cancel(QUEUE, ids, now=NOW)

        states = {"holder": Answer("done", "active"), "next": Answer("done", "delayed")}
        assert answers == [states[id] for id in ids]
        moves = [entry.what for entry in await entries(store) for id, _ in entry.jobs if id == "next"]
        assert moves == ["add", "cancel"]
        assert await store.dedupe(QUEUE, "key", now=NOW) is None

    @for_each("ids", [("holder", "next"), ("next", "holder")])
    async def test_removed_with_the_active_one_it_never_waits(self, store: Store, ids: tuple[str, str]) -> None:
        await holder(store, "active", "keep-last")
        await offer(store, keyed("key", "keep-last", id="next"))

        answers = await store.remove(QUEUE, ids, force=True, now=NOW)

        states = {"holder": Answer("done", "active"), "next": Answer("done", "delayed")}
        assert answers == [states[id] for id in ids]
        assert await events_of(store, "promote") == []
        assert await store.dedupe(QUEUE, "key", now=NOW) is None

    async def test_if_it_expires_when_the_active_one_is_given_up_it_never_waits(self, store: Store) -> None:
        await holder(store, "active", "keep-last")
        rule = Extras(start_within=SECOND, dedupe=DedupeRule("key", "keep-last"))
        await offer(store, new_job("next", extras=rule))

        ticked = await store.tick(QUEUE, StallRules(on_stalled="fail"), now=NOW + LOCK)

        assert (ticked.given_up, ticked.expired) == (["holder"], 1)
        moves = [entry.what for entry in await entries(store) for id, _ in entry.jobs if id == "next"]
        assert moves == ["add", "expire"]
        assert await store.dedupe(QUEUE, "key", now=NOW + LOCK) is None

    async def test_its_data_is_not_replaced_by_that_of_another_name(self, store: Store) -> None:
        await holder(store, "active", "keep-last")
        await offer(store, keyed("key", "keep-last", id="next", data="1"))

        await offer(store, keyed("key", "keep-last", name="other", data="2"))

        assert (await read(store, "next")).data == "1"

    async def test_if_it_is_removed_another_may_wait(self, store: Store) -> None:
        held = await holder(store, "active", "keep-last")
        await offer(store, keyed("key", "keep-last", id="next"))
        await store.remove(QUEUE, ["next"], now=NOW)
        assert await store.dedupe(QUEUE, "key", now=NOW) == KeyHolder("holder")

        assert await offer(store, keyed("key", "keep-last", id="other")) == [Added("other", "created")]
        await store.settle(QUEUE, [complete(held)], now=NOW)

        assert (await read(store, "other")).state == "waiting"

    async def test_until_final_finds_the_active_one(self, store: Store) -> None:
        await holder(store, "active", "keep-last")
        await offer(store, keyed("key", "keep-last", id="next"))

        assert await offer(store, keyed("key")) == [Added("holder", "deduplicated")]

    async def test_a_debounce_that_takes_the_key_lets_it_go_on(self, store: Store) -> None:
        await holder(store, "active", "keep-last")
        await offer(store, keyed("key", "keep-last", id="next"))

        await offer(store, keyed("key", "debounce", SECOND, id="new", delay=SECOND))

        assert (await read(store, "next")).state == "waiting"
        assert await store.dedupe(QUEUE, "key", now=NOW) == KeyHolder("new")


class TestSupersede:
    async def test_the_running_job_is_revoked(self, store: Store) -> None:
        cursor = (await store.revoked(QUEUE)).cursor
        held = await holder(store, "active")

        await offer(store, keyed("key", "supersede", id="new"))

        assert (await store.revoked(QUEUE, cursor)).locks == [revoked_lock(held)]
        assert await events_of(store, "cancel") == [("holder", {"prev": "active", "reason": f"{SUPERSEDED}new"})]

    async def test_the_one_that_waits_for_it_is_cancelled_too(self, store: Store) -> None:
        await holder(store, "active")
        await offer(store, keyed("key", "keep-last", id="next"))

        await offer(store, keyed("key", "supersede", id="new"))

        assert [(await read(store, id)).state for id in ("holder", "next", "new")] == ["cancelled"] * 2 + ["waiting"]
        assert await store.dedupe(QUEUE, "key", now=NOW) == KeyHolder("new")

    async def test_a_parent_of_the_cancelled_job_is_told(self, store: Store) -> None:
        root, child = new_flow(new_job("root", queue=ELSEWHERE), keyed("key", id="child"))
        await offer(store, root, child)

        await offer(store, keyed("key", "supersede", id="new"))

        assert (await read(store, "root", ELSEWHERE)).state == "failed"

    async def test_jobs_of_one_call_supersede_each_other_in_order(self, store: Store) -> None:
        await holder(store, "waiting")

        await store.add([[keyed("key", "supersede", id=id)] for id in ("first", "second")], now=NOW)

        moves = [entry.what for entry in await entries(store) for id, _ in entry.jobs if id == "first"]
        assert moves == ["add", "cancel"]
        assert (await read(store, "holder")).reason == f"{SUPERSEDED}first"
        assert (await read(store, "first")).reason == f"{SUPERSEDED}second"

    async def test_it_comes_before_the_new_one_in_the_events(self, store: Store) -> None:
        await holder(store, "waiting")

        await offer(store, keyed("key", "supersede", id="new"))

        moved = [(entry.what, id) for entry in await entries(store) for id, _ in entry.jobs]
        assert moved[0] == ("add", "holder")
        assert sorted(moved[1:]) == [("add", "new"), ("cancel", "holder")]
