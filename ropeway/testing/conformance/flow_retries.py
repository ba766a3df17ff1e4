"""retry: parents with the children by which they failed."""

from __future__ import annotations

from ...job.retention import Retention
from ...store.contract import Store
from ...store.values import Answer
from ..arrange import events_of, read
from ..factories import ELSEWHERE, NOW, QUEUE, fail, new_flow, new_job
from .flow_actions import add_flow, break_down, children_of, deliver, finish, settle_as, state_of


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
