"""The last child that ends releases its parent."""

from __future__ import annotations

from ...job.retention import Retention
from ...store.contract import Store
from ...store.values import Answer, ChildStatus, Claimed, JobChange, StallRules
from ..arrange import add, claim, claim_one, events_of, is_gone, read
from ..factories import (
    ELSEWHERE,
    LOCK,
    MINUTE,
    NOW,
    QUEUE,
    claim_request,
    complete,
    new_flow,
    new_job,
    postpone,
    retry,
)
from .cases import for_each
from .flow_actions import add_flow, children_of, finish, settle_as, state_of
from .listen import hears


class TestRelease:
    @for_each("queue", [QUEUE, ELSEWHERE])
    async def test_the_last_child_releases_the_parent(self, store: Store, queue: str) -> None:
        await add_flow(store, *new_flow(new_job("p"), new_job("a", queue=queue), new_job("b", queue=queue)))

        await finish(store, "a", "1", queue)
        assert await state_of(store, "p") == "waiting-children"
        await finish(store, "b", "2", queue)

        assert await state_of(store, "p") == "waiting"
        assert await events_of(store, "release") == [("p", {})]
        assert {id: child.result for id, child in (await children_of(store, "p")).items()} == {"a": "1", "b": "2"}
        assert (await claim_one(store)).id == "p"

    async def test_in_the_step_that_settles_the_child(self, store: Store) -> None:
        await add_flow(store, *new_flow(new_job("p"), new_job("a"), new_job("b")))
        jobs = await claim(store, 2)

        settled = await store.settle(QUEUE, [complete(job) for job in jobs], claim_request(5), now=NOW)

        assert isinstance(settled.claimed, Claimed)
        assert [job.id for job in settled.claimed.jobs] == ["p"]

    async def test_a_listener_is_woken(self, store: Store) -> None:
        await add_flow(store, *new_flow(new_job("p"), new_job("a", queue=ELSEWHERE)))
        listener = store.listen("jobs", [QUEUE])
        try:
            await finish(store, "a", queue=ELSEWHERE)

            assert await hears(listener)
        finally:
            listener.close()

    async def test_a_child_with_attempts_left_does_not_count(self, store: Store) -> None:
        await add_flow(store, *new_flow(new_job("p"), new_job("a")))

        await settle_as(store, "a", retry)
        await settle_as(store, "a", postpone)

        assert await state_of(store, "p") == "waiting-children"
        await finish(store, "a")
        assert await state_of(store, "p") == "waiting"

    async def test_a_delay_begins_with_the_release(self, store: Store) -> None:
        await add_flow(store, *new_flow(new_job("p", delay=MINUTE), new_job("a")))
        held = await claim_one(store)
        assert held.id == "a"
        later = NOW + 10_000

        await store.settle(QUEUE, [complete(held)], now=later)

        parent = await read(store, "p")
        assert (parent.state, parent.due_at) == ("delayed", later + MINUTE)
        assert await events_of(store, "release") == [("p", {"due_at": later + MINUTE})]
        assert [job.id for job in await claim(store, now=later + MINUTE)] == ["p"]

    async def test_a_tick_that_releases_a_parent_tells_when_its_delay_ends(self, store: Store) -> None:
        await add_flow(store, *new_flow(new_job("p", delay=1_000), (new_job("a"), "ignore")))
        await claim_one(store)

        ticked = await store.tick(QUEUE, StallRules(0), now=NOW + LOCK)

        assert (ticked.given_up, await state_of(store, "p")) == (["a"], "delayed")
        assert ticked.next_at == NOW + LOCK + 1_000

    async def test_a_parent_that_is_changed_goes_on_waiting(self, store: Store) -> None:
        await add_flow(store, *new_flow(new_job("p", delay=1_000), new_job("a")))

        [answer] = await store.change(QUEUE, [JobChange("p", priority=3, data='"other"')], now=NOW)

        parent = await read(store, "p")
        assert answer == Answer("done", "waiting-children")
        assert (parent.state, parent.priority, parent.data, parent.due_at) == ("waiting-children", 3, '"other"', None)

    async def test_an_instant_that_has_passed_delays_no_more(self, store: Store) -> None:
        await add_flow(store, *new_flow(new_job("p", due_at=NOW + 5_000), new_job("a")))
        held = await claim_one(store)

        await store.settle(QUEUE, [complete(held)], now=NOW + 6_000)

        assert await state_of(store, "p") == "waiting"

    async def test_priority_and_pause_hold_once_released(self, store: Store) -> None:
        await add_flow(store, *new_flow(new_job("p", priority=-5, name="sum"), new_job("a")))
        await add(store, new_job("plain"))
        await store.configure(QUEUE, pause_names=["sum"], now=NOW)

        await finish(store, "a")

        assert [job.id for job in await claim(store, 1)] == ["plain"]
        await store.configure(QUEUE, resume_names=["sum"], now=NOW)
        assert [job.id for job in await claim(store, 1)] == ["p"]

    async def test_results_outlive_the_children(self, store: Store) -> None:
        await add_flow(store, *new_flow(new_job("p"), new_job("a")))

        await settle_as(store, "a", lambda job: complete(job, "7", keep=Retention(count=0)))

        assert await is_gone(store, "a")
        assert await state_of(store, "p") == "waiting"
        assert (await children_of(store, "p"))["a"] == ChildStatus(QUEUE, "a", "fail", "completed", "7")

    async def test_removing_the_parent_leaves_its_children(self, store: Store) -> None:
        await add_flow(store, *new_flow(new_job("p"), new_job("a")))

        await store.remove(QUEUE, ["p"], now=NOW)

        await finish(store, "a")
        assert await state_of(store, "a") == "completed"
        assert await is_gone(store, "p")

    async def test_a_cancelled_parent_is_not_released(self, store: Store) -> None:
        await add_flow(store, *new_flow(new_job("p"), new_job("a")))
        await store.cancel(QUEUE, ["p"], now=NOW)

        await finish(store, "a")

        assert await state_of(store, "p") == "cancelled"
        assert (await children_of(store, "p"))["a"].state == "completed"

    async def test_a_child_retried_by_hand_runs_its_parent_no_second_time(self, store: Store) -> None:
        await add_flow(store, *new_flow(new_job("p"), new_job("a")))
        await finish(store, "a", "1")
        await finish(store, "p")
        await store.retry(QUEUE, ["a"], now=NOW)

        await finish(store, "a", "2")

        assert await state_of(store, "p") == "completed"
        assert (await children_of(store, "p"))["a"].result == "1"
