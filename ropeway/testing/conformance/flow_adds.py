"""add: jobs with their children, and the pages that list these."""

from __future__ import annotations

from ...job.flows import Parent
from ...job.retention import Retention
from ...store.contract import Store
from ...store.values import ChildStatus
from ..arrange import add, claim, events_of, is_gone, read, snapshot
from ..factories import ELSEWHERE, NOW, QUEUE, complete, new_flow, new_job
from .cases import for_each
from .flow_actions import add_flow, break_down, children_of, deliver, finish, settle_as, state_of


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

    @for_each("queue", [QUEUE, ELSEWHERE])
    async def test_a_parent_that_is_found_gets_no_other_children(self, store: Store, queue: str) -> None:
        await add_flow(store, *new_flow(new_job("p"), new_job("a", queue=queue)))
        before = await snapshot(store)

        root, middle = new_flow(new_job("p"), new_job("b", queue=queue))
        assert await add_flow(store, root, *new_flow(middle, new_job("c"))) == ["found"] * 3
        assert await snapshot(store) == before
        assert [*await children_of(store, "p")] == ["a"]

    @for_each("queue", [QUEUE, ELSEWHERE])
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
