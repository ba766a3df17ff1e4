"""update: running jobs get children, and wait for them."""

from __future__ import annotations

from ...job.flows import Policy
from ...job.states import State
from ...store.contract import Store
from ...store.values import Answer
from ..arrange import add, claim, claim_one, events_of, is_gone, read, snapshot
from ..factories import DAY, ELSEWHERE, FOREIGN, NOW, QUEUE, complete, fail, new_flow, new_job, postpone
from .cases import for_each
from .flow_actions import add_flow, awaiting, break_down, children_of, claim_by_id, finish, give_children, state_of


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

    @for_each(
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
