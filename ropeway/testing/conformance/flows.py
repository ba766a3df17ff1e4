"""Parents and children: each test of the table of `job/flows.py` in every store."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

import pytest
from msgspec.structs import replace

from ...job.flows import CHILD_STATES, EFFECTS, POLICIES, Child, ChildEnd, Effect, Parent, Policy
from ...job.outcomes import Outcome
from ...job.record import JobRecord, NewJob
from ...job.retention import Retention
from ...job.states import State
from ...store.contract import Store
from ...store.values import Answer, ChildStatus, Claimed, JobChange, JobUpdate, StallRules
from ..arrange import add, claim, claim_one, events_of, is_gone, read, snapshot
from ..factories import (
    DAY,
    ELSEWHERE,
    FOREIGN,
    LOCK,
    MINUTE,
    NOW,
    QUEUE,
    claim_request,
    complete,
    fail,
    hand_back,
    new_flow,
    new_job,
    postpone,
    retry,
    token_of,
)
from .listen import hears

End: TypeAlias = Callable[[Store, str], Awaitable[object]]


async def deliver(store: Store) -> None:
    """Where queues are on different servers, ticks may have to deliver what one tells another."""
    for _ in range(3):
        for queue in (ELSEWHERE, QUEUE):
            await store.tick(queue, StallRules(), now=NOW)


async def add_flow(store: Store, *bundle: NewJob) -> list[str]:
    [added] = await store.add([bundle], now=NOW)
    await deliver(store)
    return [one.verdict for one in added]


async def claim_by_id(store: Store, id: str, queue: str = QUEUE) -> JobRecord:
    """Claims all that waits, and hands back all but one."""
    jobs = await claim(store, 100, queue=queue)
    [wanted] = [job for job in jobs if job.id == id]
    await store.settle(queue, [hand_back(job) for job in jobs if job.id != id], now=NOW)
    return wanted


async def settle_as(store: Store, id: str, outcome: Callable[[JobRecord], Outcome], queue: str = QUEUE) -> None:
    held = await claim_by_id(store, id, queue)
    settled = await store.settle(queue, [outcome(held)], now=NOW)
    assert settled.answers[0].verdict == "done"
    await deliver(store)


async def finish(store: Store, id: str, result: str = '"done"', queue: str = QUEUE) -> None:
    await settle_as(store, id, lambda job: complete(job, result), queue)


async def break_down(store: Store, id: str, queue: str = QUEUE) -> None:
    await settle_as(store, id, fail, queue)


async def give_up(store: Store, id: str) -> None:
    await claim_by_id(store, id)
    await store.tick(QUEUE, StallRules(0), now=NOW + LOCK)


async def clean_waiting(store: Store, id: str) -> None:
    assert id in (await store.clean(QUEUE, "waiting", now=NOW)).ids


async def state_of(store: Store, id: str, queue: str = QUEUE) -> State | None:
    [job] = await store.get(queue, [id])
    return job.state if job else None


async def children_of(store: Store, id: str, queue: str = QUEUE) -> dict[str, ChildStatus]:
    page = await store.children(queue, id)
    assert page is not None
    assert page.counts == {state: sum(child.state == state for child in page.children) for state in CHILD_STATES}
    return {child.id: child for child in page.children}


class TestAddFlow:
    async def test_a_parent_waits_for_its_children(self, store: Store) -> None:
        assert await add_flow(store, *new_flow(new_job("p"), new_job("a"), new_job("b"))) == ["created"] * 3

        parent = await read(store, "p")
        assert (parent.state, parent.children, parent.parents) == ("waiting-children", 2, ())
        assert (await read(store, "a")).parents == (Parent(QUEUE, "p"),)
        assert (await store.count(QUEUE))["waiting-children"] == 1
        assert [job.id for job in await claim(store, 10)] == ["a", "b"]
        assert ("p", {"name": "send"}) in await events_of(store, "add")

    async def test_children_are_listed_in_their_order(self, store: Store) -> None:
        await add_flow(store, *new_flow(new_job("p"), (new_job("a"), "ignore"), new_job("b", queue=ELSEWHERE)))

        page = await store.children(QUEUE, "p")
        assert page is not None
        assert page.children == [ChildStatus(QUEUE, "a", "ignore"), ChildStatus(ELSEWHERE, "b", "fail")]
        assert page.counts == {"pending": 2, "completed": 0, "failed": 0, "cancelled": 0}
        assert page.next is None

    async def test_children_come_in_pages_and_by_state(self, store: Store) -> None:
        await add_flow(store, *new_flow(new_job("p"), *(new_job(f"c{number}") for number in range(5))))
        await finish(store, "c1")
        await finish(store, "c3")

        first = await store.children(QUEUE, "p", limit=3)
        assert first is not None
        assert first.next is not None
        rest = await store.children(QUEUE, "p", limit=3, after=first.next)
        assert rest is not None
        assert [child.id for child in [*first.children, *rest.children]] == ["c0", "c1", "c2", "c3", "c4"]
        assert rest.next is None
        done = await store.children(QUEUE, "p", states=("completed",), limit=2)
        assert done is not None
        assert [child.id for child in done.children] == ["c1", "c3"]
        assert done.counts == first.counts == {"pending": 3, "completed": 2, "failed": 0, "cancelled": 0}

    async def test_a_job_without_children_has_none(self, store: Store) -> None:
        await add(store, new_job("a"))

        page = await store.children(QUEUE, "a")
        assert page is not None
        assert page.children == []
        assert await store.children(QUEUE, "missing") is None

    async def test_the_same_flow_again_is_found_even_if_its_children_are_gone(self, store: Store) -> None:
        flow = new_flow(new_job("p"), new_job("a"), new_job("b"))
        await add_flow(store, *flow)
        at_once = Retention(count=0)
        await settle_as(store, "a", lambda job: complete(job, keep=at_once))
        before = await snapshot(store)

        assert await add_flow(store, *flow) == ["found"] * 3
        assert await snapshot(store) == before

    @pytest.mark.parametrize("queue", [QUEUE, ELSEWHERE])
    async def test_a_parent_that_is_found_gets_no_other_children(self, store: Store, queue: str) -> None:
        await add_flow(store, *new_flow(new_job("p"), new_job("a", queue=queue)))
        before = await snapshot(store)

        root, middle = new_flow(new_job("p"), new_job("b", queue=queue))
        assert await add_flow(store, root, *new_flow(middle, new_job("c"))) == ["found"] * 3
        assert await snapshot(store) == before
        assert [*await children_of(store, "p")] == ["a"]

    @pytest.mark.parametrize("queue", [QUEUE, ELSEWHERE])
    async def test_a_child_that_was_removed_does_not_come_back_with_its_parent(self, store: Store, queue: str) -> None:
        flow = new_flow(new_job("p"), new_job("a", queue=queue), new_job("b"))
        await add_flow(store, *flow)
        await store.remove(queue, ["a"], now=NOW)
        await deliver(store)

        assert await add_flow(store, *flow) == ["found"] * 3
        assert await is_gone(store, "a", queue)

    async def test_a_child_of_a_new_parent_and_one_that_is_found_is_a_conflict(self, store: Store) -> None:
        await add_flow(store, *new_flow(new_job("p"), new_job("a")))

        found, child = new_flow(new_job("p"), new_job("b"))
        new, child = new_flow(new_job("q"), child)
        assert await add_flow(store, found, new, child) == ["found", "skipped", "conflict"]
        assert await is_gone(store, "q")

    async def test_parents_of_the_same_child_may_be_alike(self, store: Store) -> None:
        left, shared = new_flow(new_job("left"), new_job("shared", queue=ELSEWHERE))
        right, shared = new_flow(new_job("right"), shared)
        await add_flow(store, left, right, shared)

        assert [(await read(store, id)).children for id in ("left", "right")] == [1, 1]
        await finish(store, "shared", queue=ELSEWHERE)
        assert [await state_of(store, id) for id in ("left", "right")] == ["waiting"] * 2

    async def test_a_child_whose_id_exists_is_a_conflict(self, store: Store) -> None:
        [there] = await add(store, new_job("a"))

        assert await add_flow(store, *new_flow(new_job("p"), new_job("a"), new_job("b"))) == [
            "skipped",
            "conflict",
            "skipped",
        ]
        assert (await snapshot(store))[0] == [there]

    async def test_a_parent_whose_id_exists_with_other_data_is_a_conflict(self, store: Store) -> None:
        await add(store, new_job("p", data='"other"'))

        assert await add_flow(store, *new_flow(new_job("p"), new_job("a"))) == ["conflict", "skipped"]
        assert await is_gone(store, "a")

    async def test_one_job_may_have_two_parents(self, store: Store) -> None:
        root, left, right = new_flow(new_job("root"), new_job("left"), new_job("right"))
        left, shared = new_flow(left, new_job("shared"))
        right, shared = new_flow(right, shared)
        await add_flow(store, root, left, right, shared)

        assert (await read(store, "shared")).parents == (Parent(QUEUE, "left"), Parent(QUEUE, "right"))
        await finish(store, "shared")
        assert [await state_of(store, id) for id in ("left", "right", "root")] == [
            "waiting",
            "waiting",
            "waiting-children",
        ]
        await finish(store, "left")
        assert await state_of(store, "root") == "waiting-children"
        await finish(store, "right")
        assert await state_of(store, "root") == "waiting"

    async def test_many_children_and_deep_chains(self, store: Store) -> None:
        wide = new_flow(new_job("wide"), *(new_job(f"c{number}") for number in range(300)))
        await add_flow(store, *wide)
        jobs = await claim(store, 300)
        await store.settle(QUEUE, [complete(job) for job in jobs], now=NOW)
        assert await state_of(store, "wide") == "waiting"
        await finish(store, "wide")

        chain = [new_job("link-0")]
        for number in range(1, 60):
            chain[-1:] = new_flow(chain[-1], new_job(f"link-{number}"))
        await add_flow(store, *chain)
        await break_down(store, "link-59")
        assert {await state_of(store, f"link-{number}") for number in range(60)} == {"failed"}
        assert (await read(store, "link-0")).reason == f"child {QUEUE}/link-59 failed: no luck"


class TestRelease:
    @pytest.mark.parametrize("queue", [QUEUE, ELSEWHERE])
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


ENDS: Final[dict[str, tuple[ChildEnd, End]]] = {
    "completed": ("completed", finish),
    "failed": ("failed", break_down),
    "given up": ("failed", give_up),
    "cancelled": ("cancelled", lambda store, id: store.cancel(QUEUE, [id], now=NOW)),
    "removed": ("removed", lambda store, id: store.remove(QUEUE, [id], now=NOW)),
    "cleaned": ("removed", clean_waiting),
}


class TestChildPolicies:
    @pytest.mark.parametrize("policy", POLICIES)
    @pytest.mark.parametrize("how", ENDS)
    async def test_the_table(self, store: Store, how: str, policy: Policy) -> None:
        end, act = ENDS[how]
        await add_flow(store, *new_flow(new_job("p"), (new_job("a"), policy), new_job("z", delay=DAY)))

        await act(store, "a")

        effect = EFFECTS[end][policy]
        links = await children_of(store, "p") if await state_of(store, "p") else {}
        states: dict[Effect, State | None] = {"fail": "failed", "start": "waiting", "remove": None}
        assert await state_of(store, "p") == states.get(effect, "waiting-children")
        if effect == "forget":
            assert "a" not in links
            assert (await read(store, "p")).children == 1
        elif effect != "remove":
            assert links["a"].state == end
            assert links["a"].result == ('"done"' if end == "completed" else None)
        assert await state_of(store, "z") == (None if effect == "remove" else "delayed")

    @pytest.mark.parametrize("policy", POLICIES)
    @pytest.mark.parametrize("how", ENDS)
    async def test_what_the_last_child_does(self, store: Store, how: str, policy: Policy) -> None:
        end, act = ENDS[how]
        await add_flow(store, *new_flow(new_job("p"), (new_job("a"), policy)))

        await act(store, "a")

        states: dict[Effect, State | None] = {"fail": "failed", "remove": None, "hold": "waiting-children"}
        assert await state_of(store, "p") == states.get(EFFECTS[end][policy], "waiting")

    async def test_the_reason_names_the_child(self, store: Store) -> None:
        await add_flow(store, *new_flow(new_job("p"), new_job("a", queue=ELSEWHERE)))

        await break_down(store, "a", ELSEWHERE)

        parent = await read(store, "p")
        assert (parent.state, parent.reason) == ("failed", f"child {ELSEWHERE}/a failed: no luck")
        assert parent.finished_at == NOW
        assert await events_of(store, "fail by child") == [("p", {"reason": parent.reason})]
        link = (await children_of(store, "p"))["a"]
        assert (link.state, link.reason) == ("failed", parent.reason)

    async def test_a_cancelled_child_is_named_with_its_reason(self, store: Store) -> None:
        await add_flow(store, *new_flow(new_job("p"), new_job("a"), new_job("q")))
        await store.cancel(QUEUE, ["a"], "not needed", now=NOW)

        assert (await read(store, "p")).reason == f"child {QUEUE}/a was cancelled: not needed"

    async def test_failure_goes_upward_as_each_policy_says(self, store: Store) -> None:
        root, middle = new_flow(new_job("root"), (new_job("middle"), "ignore"))
        await add_flow(store, root, *new_flow(middle, new_job("leaf")))

        await break_down(store, "leaf")

        assert await state_of(store, "middle") == "failed"
        assert await state_of(store, "root") == "waiting"
        reason = f"child {QUEUE}/leaf failed: no luck"
        assert (await children_of(store, "root"))["middle"] == ChildStatus(
            QUEUE, "middle", "ignore", "failed", None, reason
        )

    async def test_the_retention_of_a_parent_that_fails_holds(self, store: Store) -> None:
        await add_flow(store, *new_flow(new_job("p", remove_on_fail=True), new_job("a")))

        await break_down(store, "a")

        assert await is_gone(store, "p")

    async def test_remove_takes_unfinished_descendants_and_revokes_running_ones(self, store: Store) -> None:
        middle = new_job("middle")
        root, bad, middle = new_flow(new_job("root"), (new_job("bad"), "remove"), middle)
        middle, leaf, done = new_flow(middle, new_job("leaf"), new_job("done"))
        await add_flow(store, root, bad, middle, leaf, done)
        await finish(store, "done")
        held = await claim_by_id(store, "leaf")
        cursor = (await store.revoked(QUEUE)).cursor

        await break_down(store, "bad")

        assert [await state_of(store, id) for id in ("root", "middle", "leaf")] == [None] * 3
        assert await state_of(store, "done") == "completed"
        [lock] = (await store.revoked(QUEUE, cursor)).locks
        assert (lock.id, lock.token, lock.why) == ("leaf", held.token, "removed")

    async def test_remove_spares_what_another_parent_waits_for(self, store: Store) -> None:
        left, bad, shared = new_flow(new_job("left"), (new_job("bad"), "remove"), new_job("shared"))
        right, shared = new_flow(new_job("right"), shared)
        await add_flow(store, left, right, bad, shared)

        await break_down(store, "bad")

        assert await is_gone(store, "left")
        assert (await read(store, "shared")).parents == (Parent(QUEUE, "right"),)
        await finish(store, "shared")
        assert await state_of(store, "right") == "waiting"

    async def test_continue_starts_once_and_records_later_ends(self, store: Store) -> None:
        await add_flow(
            store, *new_flow(new_job("p"), (new_job("a"), "continue"), (new_job("b"), "continue"), new_job("c"))
        )
        await break_down(store, "a")
        assert await state_of(store, "p") == "waiting"
        await break_down(store, "b")
        await finish(store, "c")

        assert await events_of(store, "release") == [("p", {})]
        links = await children_of(store, "p")
        assert {id: link.state for id, link in links.items()} == {"a": "failed", "b": "failed", "c": "completed"}

    async def test_wait_goes_on_until_the_child_is_retried_and_completes(self, store: Store) -> None:
        await add_flow(store, *new_flow(new_job("p"), (new_job("a"), "wait")))
        await break_down(store, "a")
        await store.retry(QUEUE, ["a"], now=NOW)
        await break_down(store, "a")
        assert await state_of(store, "p") == "waiting-children"
        await store.retry(QUEUE, ["a"], now=NOW)

        await finish(store, "a", "5")

        assert await state_of(store, "p") == "waiting"
        assert (await children_of(store, "p"))["a"].result == "5"

    async def test_a_child_that_is_retried_and_then_removed_is_no_longer_waited_for(self, store: Store) -> None:
        await add_flow(store, *new_flow(new_job("p"), (new_job("a"), "wait"), (new_job("b"), "wait")))
        await break_down(store, "a")
        await store.retry(QUEUE, ["a"], now=NOW)

        await store.remove(QUEUE, ["a"], now=NOW)

        assert [*await children_of(store, "p")] == ["b"]
        await finish(store, "b")
        assert await state_of(store, "p") == "waiting"

    async def test_an_obliterated_queue_of_children_releases_the_parent(self, store: Store) -> None:
        await add_flow(store, *new_flow(new_job("p"), new_job("a", queue=ELSEWHERE), new_job("b", queue=ELSEWHERE)))

        while (await store.obliterate(ELSEWHERE, now=NOW)).more:
            pass
        await deliver(store)

        assert await state_of(store, "p") == "waiting"
        assert await children_of(store, "p") == {}


class TestIdsThatComeBack:
    """A job that has got the id of a child that is gone is not that child."""

    async def stranger(self, store: Store, *others: NewJob | tuple[NewJob, Policy]) -> None:
        await add_flow(store, *new_flow(new_job("p"), new_job("c"), *others))
        await settle_as(store, "c", lambda job: complete(job, keep=Retention(count=0)))
        await add(store, new_job("c", data='"other"'))

    async def test_it_is_not_removed_with_the_parent(self, store: Store) -> None:
        await self.stranger(store, (new_job("b"), "remove"))

        await break_down(store, "b")

        assert await is_gone(store, "p")
        assert await state_of(store, "c") == "waiting"

    async def test_its_end_is_not_the_child_s(self, store: Store) -> None:
        await self.stranger(store, new_job("b"))

        await store.cancel(QUEUE, ["c"], now=NOW)

        assert await state_of(store, "p") == "waiting-children"
        assert (await children_of(store, "p"))["c"].state == "completed"

    async def test_a_retried_parent_does_not_wait_for_it(self, store: Store) -> None:
        await add_flow(store, *new_flow(new_job("p"), new_job("c")))
        await settle_as(store, "c", lambda job: fail(job, keep=Retention(count=0)))
        await add(store, new_job("c", data='"other"'))

        await store.retry(QUEUE, ["p"], now=NOW)
        await deliver(store)

        assert await state_of(store, "p") == "waiting"


class TestRetryOfParents:
    async def test_a_parent_is_retried_with_the_children_it_failed_by(self, store: Store) -> None:
        root, middle, other = new_flow(new_job("root"), new_job("middle"), new_job("other"))
        await add_flow(store, root, *new_flow(middle, new_job("leaf", queue=ELSEWHERE)), other)
        await finish(store, "other")
        await break_down(store, "leaf", ELSEWHERE)
        assert await state_of(store, "root") == "failed"

        [answer] = await store.retry(QUEUE, ["root"], now=NOW)
        await deliver(store)

        assert answer == Answer("done", "failed")
        assert [await state_of(store, id) for id in ("root", "middle", "other")] == [
            "waiting-children",
            "waiting-children",
            "completed",
        ]
        assert (await read(store, "leaf", ELSEWHERE)).state == "waiting"
        assert (await read(store, "root")).reason is None
        await finish(store, "leaf", "3", ELSEWHERE)
        await finish(store, "middle")
        assert await state_of(store, "root") == "waiting"

    async def test_it_can_fail_by_them_again(self, store: Store) -> None:
        await add_flow(store, *new_flow(new_job("p"), new_job("a")))
        await break_down(store, "a")
        await store.retry(QUEUE, ["p"], now=NOW)
        await deliver(store)
        assert (await children_of(store, "p"))["a"].state == "pending"

        await break_down(store, "a")

        assert await state_of(store, "p") == "failed"

    async def test_a_child_that_is_gone_is_not_waited_for(self, store: Store) -> None:
        await add_flow(store, *new_flow(new_job("p"), new_job("a", remove_on_fail=True)))
        await settle_as(store, "a", lambda job: fail(job, keep=Retention(count=0)))
        assert await state_of(store, "p") == "failed"

        await store.retry(QUEUE, ["p"], now=NOW)
        await deliver(store)

        assert await state_of(store, "p") == "waiting"

    async def test_a_parent_that_failed_by_itself_is_retried_alone(self, store: Store) -> None:
        await add_flow(store, *new_flow(new_job("p"), (new_job("a"), "ignore")))
        await break_down(store, "a")
        await break_down(store, "p")

        await store.retry(QUEUE, ["p"], now=NOW)

        assert await state_of(store, "p") == "waiting"
        assert await state_of(store, "a") == "failed"

    async def test_a_child_of_two_parents_is_retried_once(self, store: Store) -> None:
        shared = new_job("shared")
        root, middle, shared = new_flow(new_job("root"), new_job("middle"), shared)
        middle, shared = new_flow(middle, shared)
        await add_flow(store, root, middle, shared)
        await store.cancel(QUEUE, ["shared"], now=NOW)

        await store.retry(QUEUE, ["root"], now=NOW)

        assert [id for id, _ in await events_of(store, "retry by hand")].count("shared") == 1
        counts = await store.count(QUEUE)
        assert (counts["waiting"], counts["waiting-children"], counts["cancelled"]) == (1, 2, 0)

    async def test_a_cancelled_parent_brings_back_children_that_failed_meanwhile(self, store: Store) -> None:
        await add_flow(store, *new_flow(new_job("p"), new_job("a"), new_job("b")))
        await store.cancel(QUEUE, ["p"], now=NOW)
        await break_down(store, "a")

        await store.retry(QUEUE, ["p"], now=NOW)
        await deliver(store)

        assert [await state_of(store, id) for id in ("p", "a", "b")] == ["waiting-children", "waiting", "waiting"]
        await finish(store, "b")
        assert await state_of(store, "p") == "waiting-children"
        await finish(store, "a")
        assert await state_of(store, "p") == "waiting"

    async def test_a_cancelled_parent_waits_again_for_those_that_are_left(self, store: Store) -> None:
        await add_flow(store, *new_flow(new_job("p"), new_job("a"), new_job("b")))
        await store.cancel(QUEUE, ["p"], now=NOW)
        await finish(store, "a")

        await store.retry(QUEUE, ["p"], now=NOW)

        assert await state_of(store, "p") == "waiting-children"
        await finish(store, "b")
        assert await state_of(store, "p") == "waiting"


async def give_children(
    store: Store, parent: JobRecord, *children: NewJob, token: str | None = None, policy: Policy = "fail"
) -> str:
    links = tuple(Child(child.queue, child.id, policy) for child in children)
    adds = tuple(replace(child, parents=(Parent(parent.queue, parent.id),)) for child in children)
    update = JobUpdate(parent.id, token or token_of(parent), children=links, adds=adds)
    [answer] = await store.update(parent.queue, [update], now=NOW)
    await deliver(store)
    return answer.verdict


def awaiting(job: JobRecord) -> Outcome:
    return replace(postpone(job), awaits_children=True)


class TestChildrenAtRunTime:
    async def test_a_running_job_gets_children_and_waits_for_them(self, store: Store) -> None:
        await add(store, new_job("p"))
        held = await claim_one(store)

        assert await give_children(store, held, new_job("a"), new_job("b", queue=ELSEWHERE)) == "done"
        assert (await read(store, "p")).children == 2
        await store.settle(QUEUE, [awaiting(held)], now=NOW)

        assert await state_of(store, "p") == "waiting-children"
        assert ("p", {}) in await events_of(store, "postpone")
        await finish(store, "a", "1")
        await finish(store, "b", "2", ELSEWHERE)
        again = await claim_one(store)
        assert (again.id, again.attempts_made, again.attempts_started) == ("p", 0, 2)
        assert {id: child.result for id, child in (await children_of(store, "p")).items()} == {"a": "1", "b": "2"}

    async def test_children_that_ended_before_are_not_waited_for(self, store: Store) -> None:
        await add(store, new_job("p"))
        held = await claim_one(store)
        await give_children(store, held, new_job("a"))
        await finish(store, "a")

        await store.settle(QUEUE, [awaiting(held)], now=NOW)

        assert await state_of(store, "p") == "waiting"

    @pytest.mark.parametrize(
        ("policy", "state"),
        [("fail", "failed"), ("ignore", "waiting-children"), ("continue", "waiting"), ("wait", "waiting-children")],
    )
    async def test_a_child_that_failed_before_acts_when_the_parent_waits(
        self, store: Store, policy: Policy, state: State
    ) -> None:
        await add(store, new_job("p"))
        held = await claim_one(store)
        await give_children(store, held, new_job("a"), new_job("z", delay=DAY), policy=policy)
        await break_down(store, "a")
        assert await state_of(store, "p") == "active"

        await store.settle(QUEUE, [awaiting(held)], now=NOW)

        assert await state_of(store, "p") == state

    async def test_a_parent_that_failed_by_a_child_has_no_token(self, store: Store) -> None:
        await add(store, new_job("p"))
        held = await claim_one(store)
        await give_children(store, held, new_job("a"))
        await store.settle(QUEUE, [awaiting(held)], now=NOW)
        await break_down(store, "a")

        assert (await read(store, "p")).token is None
        settled = await store.settle(QUEUE, [fail(held)], now=NOW)
        assert settled.answers == [Answer("lost", "failed")]

    async def test_what_a_failed_sibling_takes_with_it_is_settled_first(self, store: Store) -> None:
        await add_flow(store, *new_flow(new_job("p"), (new_job("bad"), "remove"), new_job("b"), new_job("c")))
        jobs = {job.id: job for job in await claim(store, 3)}

        settled = await store.settle(QUEUE, [fail(jobs["bad"]), postpone(jobs["b"]), complete(jobs["c"])], now=NOW)

        assert [answer.verdict for answer in settled.answers] == ["done"] * 3
        assert [await state_of(store, id) for id in ("p", "bad", "b", "c")] == [None, "failed", None, "completed"]
        assert sum((await store.count(QUEUE)).values()) == 2

    async def test_a_failure_that_started_the_parent_does_not_start_it_again(self, store: Store) -> None:
        await add_flow(store, *new_flow(new_job("p"), (new_job("a"), "continue"), (new_job("b"), "continue")))
        await break_down(store, "a")
        held = await claim_by_id(store, "p")

        await store.settle(QUEUE, [awaiting(held)], now=NOW)

        assert await state_of(store, "p") == "waiting-children"
        await finish(store, "b")
        assert await state_of(store, "p") == "waiting"

    async def test_a_job_without_children_that_waits_for_them_is_next_in_line(self, store: Store) -> None:
        await add(store, new_job("p"))
        held = await claim_one(store)

        await store.settle(QUEUE, [awaiting(held)], now=NOW)

        assert await state_of(store, "p") == "waiting"

    async def test_a_stale_token_adds_nothing(self, store: Store) -> None:
        await add(store, new_job("p"))
        held = await claim_one(store)

        assert await give_children(store, held, new_job("a"), token=FOREIGN) == "lost"

        assert await is_gone(store, "a")
        assert await children_of(store, "p") == {}

    async def test_a_repeated_call_adds_nothing_more(self, store: Store) -> None:
        await add(store, new_job("p"))
        held = await claim_one(store)
        child = new_job("a")
        await give_children(store, held, child)
        before = await snapshot(store)

        assert await give_children(store, held, child) == "done"

        assert await snapshot(store) == before

    async def test_an_id_that_exists_is_refused(self, store: Store) -> None:
        await add(store, new_job("p"))
        held = await claim_one(store)
        await add(store, new_job("a"))

        assert await give_children(store, held, new_job("a"), new_job("b")) == "refused"

        assert await is_gone(store, "b")
        assert await children_of(store, "p") == {}

    async def test_a_parent_of_a_flow_may_get_more(self, store: Store) -> None:
        await add_flow(store, *new_flow(new_job("p"), new_job("a")))
        await finish(store, "a", "1")
        held = await claim_one(store)
        await give_children(store, held, new_job("b"))

        await store.settle(QUEUE, [awaiting(held)], now=NOW)
        assert await state_of(store, "p") == "waiting-children"
        await finish(store, "b", "2")

        assert await state_of(store, "p") == "waiting"
        assert [*await children_of(store, "p")] == ["a", "b"]


async def awaits(store: Store, id: str) -> bool:
    page = await store.children(QUEUE, id, limit=1)
    assert page is not None
    return page.awaited


class TestAwaited:
    """`Children.awaited` says whether a job waits, or would wait if it were postponed until its children end."""

    async def test_until_the_last_child_has_ended(self, store: Store) -> None:
        await add_flow(store, *new_flow(new_job("p"), new_job("a"), (new_job("b"), "ignore")))
        assert await awaits(store, "p")
        await finish(store, "a")
        assert await awaits(store, "p")

        await break_down(store, "b")

        assert not await awaits(store, "p")

    async def test_a_page_without_children_tells_it_too(self, store: Store) -> None:
        await add_flow(store, *new_flow(new_job("p"), new_job("a")))

        page = await store.children(QUEUE, "p", states=("failed",))
        assert page is not None
        assert (page.children, page.awaited) == ([], True)

    async def test_never_without_children(self, store: Store) -> None:
        await add(store, new_job("p"))

        assert not await awaits(store, "p")

    async def test_as_long_as_a_failed_child_is_waited_for(self, store: Store) -> None:
        await add_flow(store, *new_flow(new_job("p"), (new_job("a"), "wait")))
        await break_down(store, "a")
        assert await awaits(store, "p")
        await store.retry(QUEUE, ["a"], now=NOW)

        await finish(store, "a")

        assert not await awaits(store, "p")

    async def test_while_others_are_left_of_a_parent_that_was_started(self, store: Store) -> None:
        await add_flow(store, *new_flow(new_job("p"), (new_job("a"), "continue"), new_job("b")))
        await break_down(store, "a")
        assert await state_of(store, "p") == "waiting"
        assert await awaits(store, "p")

        await finish(store, "b")

        assert not await awaits(store, "p")

    @pytest.mark.parametrize(
        ("policy", "awaited"), [("fail", True), ("remove", True), ("continue", True), ("wait", True), ("ignore", False)]
    )
    async def test_while_a_failure_is_owed(self, store: Store, policy: Policy, awaited: bool) -> None:
        await add(store, new_job("p"))
        held = await claim_one(store)
        await give_children(store, held, new_job("a"), policy=policy)
        assert await awaits(store, "p")

        await break_down(store, "a")

        assert await awaits(store, "p") == awaited

    async def test_no_more_when_the_last_pending_child_is_removed(self, store: Store) -> None:
        await add_flow(store, *new_flow(new_job("p"), new_job("a")))

        await store.remove(QUEUE, ["a"], now=NOW)
        await deliver(store)

        assert not await awaits(store, "p")

    async def test_no_more_once_the_parent_failed_by_its_only_child(self, store: Store) -> None:
        await add_flow(store, *new_flow(new_job("p"), new_job("a")))
        await break_down(store, "a")
        assert not await awaits(store, "p")

        await store.retry(QUEUE, ["p"], now=NOW)
        await deliver(store)

        assert await awaits(store, "p")
