"""Dedupe keys: what an add does if another job holds its key, and when a key is free again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import pytest
from msgspec.structs import replace

from ...job.dedupe import ACTIONS, MODES, SUPERSEDED, DedupeMode
from ...job.extras import Extras
from ...job.instants import LAST_INSTANT
from ...job.record import JobRecord, NewJob
from ...job.retention import NOT_AT_ALL
from ...job.states import FINAL, OPEN, State
from ...store.contract import Store
from ...store.values import Added, KeyHolder, StallRules
from ..arrange import add, claim, claim_one, entries, events_of, is_gone, read
from ..factories import (
    DAY,
    ELSEWHERE,
    LOCK,
    NOW,
    QUEUE,
    SECOND,
    claim_request,
    complete,
    fail,
    keyed,
    new_flow,
    new_job,
    retry,
    revoked_lock,
)
from .fixtures import NewHandle

Ending = Callable[[Store], Awaitable[object]]


async def offer(store: Store, *jobs: NewJob, now: int = NOW) -> list[Added]:
    """Adds jobs as one bundle."""
    [answers] = await store.add([list(jobs)], now=now)
    return answers


async def holder(store: Store, state: State, mode: DedupeMode = "until-final", ttl: int = 0) -> JobRecord:
    """A job that holds the key, or held it, in a state."""
    job = keyed("key", mode, ttl, id="holder", data='"old"', delay=DAY if state == "delayed" else 0)
    bundle = new_flow(job, new_job("child", queue=ELSEWHERE)) if state == "waiting-children" else [job]
    await store.add([bundle], now=NOW)
    if state == "cancelled":
        await store.cancel(QUEUE, ["holder"], now=NOW)
    elif state in ("active", "completed", "failed"):
        held = await claim_one(store)
        if state != "active":
            await store.settle(QUEUE, [complete(held) if state == "completed" else fail(held)], now=NOW)
    return await read(store, "holder")


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

    @pytest.mark.parametrize(("mode", "state"), CASES)
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

    @pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "throttle"])
    @pytest.mark.parametrize("state", FINAL)
    async def test_a_final_job_holds_nothing(self, store: Store, state: State, mode: DedupeMode) -> None:
        await holder(store, state)

        [answer] = await offer(store, keyed("key", mode, SECOND, id="new"))

        assert answer == Added("new", "created")

    @pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS)
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

    async def test_it_is_announced_with_the_key_and_the_discarded_id(self, store: Store) -> None:
        await holder(store, "waiting")

        await offer(store, keyed("key", id="new"))

        assert await events_of(store, "deduplicated") == [("holder", {"key": "key", "discarded": "new"})]

    async def test_a_repeated_add_is_found(self, store: Store) -> None:
        job = keyed("key", id="a", is_fresh=True)
        await offer(store, job)

        assert await offer(store, job) == [Added("a", "found")]

    async def test_a_repeated_add_is_found_when_the_job_has_ended(self, store: Store) -> None:
        job = keyed("key", id="a", is_fresh=True)
        await offer(store, job)
        await store.settle(QUEUE, [complete(await claim_one(store))], now=NOW)

        assert await offer(store, job) == [Added("a", "found")]
        assert await store.dedupe(QUEUE, "key", now=NOW) is None

    async def test_jobs_of_one_bundle_meet_each_other(self, store: Store) -> None:
        answers = await offer(store, keyed("key", id="a"), new_job("b"), keyed("key", id="c"), keyed("other", id="d"))

        assert answers == [
            Added("a", "created"),
            Added("b", "created"),
            Added("a", "deduplicated"),
            Added("d", "created"),
        ]

    async def test_bundles_of_one_call_meet_each_other(self, store: Store) -> None:
        answers = await store.add([[keyed("key", id="a")], [keyed("key", id="b")]], now=NOW)

        assert answers == [[Added("a", "created")], [Added("a", "deduplicated")]]

    async def test_bundles_of_one_call_meet_each_other_beside_a_conflict(self, store: Store) -> None:
        await add(store, new_job("known", data="1"))
        conflict = new_job("known", data="2", extras=Extras(start_within=SECOND))

        answers = await store.add(
            [[keyed("key", "throttle", SECOND, id="a")], [conflict], [keyed("key", "keep-last", id="b", delay=SECOND)]],
            now=NOW,
        )

        assert [one.verdict for [one] in answers] == ["created", "conflict", "deduplicated"]

    async def test_a_bundle_with_a_conflict_takes_no_key(self, store: Store) -> None:
        await add(store, new_job("known", data="1"))

        answers = await offer(store, keyed("key", "supersede", id="a"), new_job("known", data="2"))

        assert [one.verdict for one in answers] == ["skipped", "conflict"]
        assert await store.dedupe(QUEUE, "key", now=NOW) is None

    async def test_a_flow_whose_first_job_is_deduplicated_is_not_added(self, store: Store) -> None:
        await holder(store, "waiting")
        child, grandchild = new_flow(new_job("middle", queue=ELSEWHERE), new_job("leaf", queue=ELSEWHERE))
        root, child = new_flow(keyed("key", id="root"), child)

        answers = await offer(store, root, child, grandchild, new_job("beside"))

        assert answers == [
            Added("holder", "deduplicated"),
            Added("middle", "skipped"),
            Added("leaf", "skipped"),
            Added("beside", "created"),
        ]
        assert await store.get(ELSEWHERE, ["middle", "leaf"]) == [None, None]

    async def test_a_flow_holds_the_key_until_its_parent_is_final(self, store: Store) -> None:
        await offer(store, *new_flow(keyed("key", id="root"), new_job("leaf", queue=ELSEWHERE)))

        [answer] = await offer(store, keyed("key"))

        assert answer == Added("root", "deduplicated")

    async def test_of_many_at_once_one_is_added(self, store: Store, new_handle: NewHandle) -> None:
        others = [new_handle() for _ in range(3)]
        jobs = [keyed("key", id=f"job-{number}") for number in range(24)]

        found = await asyncio.gather(
            *([store, *others][number % 4].add([[job]], now=NOW) for number, job in enumerate(jobs))
        )

        answers = [answer for [[answer]] in found]
        [created] = [answer for answer in answers if answer.verdict == "created"]
        assert {answer.id for answer in answers} == {created.id}
        assert (await store.count(QUEUE))["waiting"] == 1
        for other in others:
            await other.close()


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

    @pytest.mark.parametrize("force", [False, True])
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
