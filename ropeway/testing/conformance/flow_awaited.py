"""children: whether a job waits for some of them."""

from __future__ import annotations

from ...job.flows import Policy
from ...store.contract import Store
from ..arrange import add, claim_one
from ..factories import NOW, QUEUE, new_flow, new_job
from .cases import for_each
from .flow_actions import add_flow, break_down, deliver, finish, give_children, state_of


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

    @for_each(
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
