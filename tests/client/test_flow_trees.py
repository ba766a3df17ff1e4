"""Flows as they stand, and what is done to whole trees."""

from __future__ import annotations

from typing import Any

import pytest

from ropeway import Flow, FlowHandle, FlowNode, InvalidInput, InvalidMove, JobNotFound, Queue, Worker
from ropeway.job.states import State

from .fixtures import MakeQueue


async def finish(queue: Queue, id: str, result: Any = None) -> None:
    """Completes one waiting job of a queue, and leaves the others."""
    jobs = {job.id: job for job in await Worker(queue).claim(100)}
    await jobs.pop(id).complete(result)
    for job in jobs.values():
        await job.release()


def drawn(node: FlowNode) -> Any:
    """A tree as nested names with states."""
    return (node.name, node.state, [drawn(child) for child in node.children])


async def states(queue: Queue, *ids: str) -> list[State | None]:
    jobs = [await queue.get(id) for id in ids]
    return [job.snapshot.state if job else None for job in jobs]


@pytest.fixture
async def tree(queue: Queue) -> FlowHandle[Any]:
    """A root above `left` and `right`, both above `leaf`; and `far` in another queue below `right`."""
    leaf = Flow("leaf", id="leaf")
    right = Flow("right", id="right", children=[leaf, Flow("far", id="far", queue="etl")])
    return await queue.add_flow(Flow("root", id="root", children=[Flow("left", id="left", children=[leaf]), right]))


@pytest.fixture
def etl(make_queue: MakeQueue) -> Queue:
    return make_queue("etl")


class TestReading:
    @pytest.mark.every_store
    async def test_the_tree_as_it_stands_across_queues(self, queue: Queue, tree: FlowHandle[Any]):
        await finish(queue, "leaf", 7)

        read = await queue.flow("root")

        leaf: Any = ("leaf", "completed", [])
        right = ("right", "waiting-children", [leaf, ("far", "waiting", [])])
        assert drawn(read) == ("root", "waiting-children", [("left", "waiting", [leaf]), right])
        assert [node.queue for node in read.walk() if node.name == "far"] == ["etl"]
        assert (read.policy, read.children[0].policy, read.hidden) == (None, "fail", 0)

    async def test_a_shared_node_is_one_object(self, queue: Queue, tree: FlowHandle[Any]):
        left, right = (await queue.flow("root")).children

        assert left.children[0] is right.children[0]
        assert [node.id for node in left.walk()] == ["left", "leaf"]

    async def test_any_node_can_be_the_root(self, queue: Queue, tree: FlowHandle[Any]):
        assert drawn(await queue.flow("left"))[0] == "left"
        assert drawn(await queue.flow("leaf")) == ("leaf", "waiting", [])

    async def test_what_is_too_deep_is_counted(self, queue: Queue, tree: FlowHandle[Any]):
        top, below = await queue.flow("root", depth=0), await queue.flow("root", depth=1)

        assert (top.children, top.hidden) == ([], 2)
        assert [(node.name, node.children, node.hidden) for node in below.children] == [
            ("left", [], 1),
            ("right", [], 2),
        ]

    async def test_what_is_beyond_the_limit_is_counted(self, queue: Queue):
        job = await queue.add_flow(Flow("root", children=[Flow("leaf") for _ in range(10)]))

        read = await queue.flow(job.id, limit=4)

        assert (len(read.children), read.hidden) == (3, 7)
        assert (await queue.flow(job.id, limit=1)).hidden == 10
        assert (await queue.flow(job.id, limit=11)).hidden == 0

    @pytest.mark.every_store
    async def test_children_that_are_gone_are_known_by_their_parent(self, queue: Queue):
        await queue.add_flow(
            Flow("root", id="root", children=[Flow("a", id="a", remove_on_complete=True), Flow("b", id="b")])
        )
        await finish(queue, "a", 5)
        await queue.remove("b")

        read = await queue.flow("root")

        [gone] = read.children
        assert (gone.id, gone.name, gone.snapshot, gone.state) == ("a", None, None, "completed")
        assert await tree_results(queue, "root") == {"a": 5}

    @pytest.mark.parametrize("given", [{"depth": -1}, {"depth": "1"}, {"limit": 0}, {"limit": 100_001}])
    async def test_bounds_that_cannot_be_meant_are_refused(self, queue: Queue, given: Any):
        with pytest.raises(InvalidInput):
            await queue.flow("root", **given)

    async def test_a_flow_that_is_missing_is_an_error(self, queue: Queue):
        for read in (queue.flow, queue.children):
            with pytest.raises(JobNotFound, match="missing"):
                await read("missing")

    async def test_children_come_in_pages_and_by_state(self, queue: Queue):
        job = await queue.add_flow(Flow("root", children=[Flow("leaf", id=f"c{n}") for n in range(5)]))
        await finish(queue, "c1")

        first = await queue.children(job.id, limit=3)
        rest = await queue.children(job.id, limit=3, after=first.next)
        pending = await queue.children(job.id, "pending")

        assert [child.id for child in [*first.children, *rest.children]] == ["c0", "c1", "c2", "c3", "c4"]
        assert [child.id for child in pending.children] == ["c0", "c2", "c3", "c4"]
        with pytest.raises(InvalidInput, match="state"):
            await queue.children(job.id, "waiting")  # type: ignore[arg-type]  # the point


async def tree_results(queue: Queue, id: str) -> Any:
    job = await queue.get(id)
    assert job is not None
    return await job.children_results()


class TestCancelling:
    @pytest.mark.every_store
    async def test_with_its_children(self, queue: Queue, etl: Queue, tree: FlowHandle[Any]):
        await finish(queue, "leaf")

        assert await tree.cancel("not needed", children=True)

        assert await states(queue, "root", "left", "right", "leaf") == ["cancelled"] * 3 + ["completed"]
        assert await states(etl, "far") == ["cancelled"]
        assert (await tree.children[1].refresh()).reason == "not needed"

    async def test_without_them(self, queue: Queue, tree: FlowHandle[Any]):
        assert await queue.cancel("root")

        assert await states(queue, "root", "left", "leaf") == ["cancelled", "waiting-children", "waiting"]

    async def test_again_it_cancels_what_is_left(self, queue: Queue, tree: FlowHandle[Any]):
        await queue.cancel("root")

        assert not await queue.cancel("root", children=True)

        assert await states(queue, "left", "leaf") == ["cancelled"] * 2

    async def test_what_another_flow_waits_for_is_spared(self, queue: Queue):
        shared = Flow("shared", id="shared", children=[Flow("below", id="below")])
        await queue.add_flows([Flow("one", id="one", children=[shared]), Flow("other", id="other", children=[shared])])

        await queue.cancel("one", children=True)
        assert await states(queue, "one", "shared", "below") == ["cancelled", "waiting-children", "waiting"]
        await queue.cancel("other", children=True)

        assert await states(queue, "other", "shared", "below") == ["cancelled"] * 3


class TestRemoving:
    @pytest.mark.every_store
    async def test_a_tree_is_removed_as_a_whole(self, queue: Queue, etl: Queue, tree: FlowHandle[Any]):
        await finish(queue, "leaf")

        await tree.remove()

        assert await states(queue, "root", "left", "right", "leaf") == [None] * 4
        assert await states(etl, "far") == [None]

    async def test_or_its_root_alone(self, queue: Queue, tree: FlowHandle[Any]):
        await queue.remove("root", children=False)

        assert await states(queue, "root", "left", "leaf") == [None, "waiting-children", "waiting"]

    @pytest.mark.every_store
    async def test_not_while_a_node_is_active(self, queue: Queue, etl: Queue, tree: FlowHandle[Any]):
        [active] = await Worker(etl).claim()

        with pytest.raises(InvalidMove, match="far") as refused:
            await queue.remove("root")

        assert (refused.value.queue, refused.value.job_id) == ("etl", "far")
        assert await states(queue, "root", "left", "leaf") == ["waiting-children", "waiting-children", "waiting"]
        await queue.remove("root", force=True)
        assert await states(queue, "root", "left", "right", "leaf") == [None] * 4
        assert await states(etl, active.id) == [None]

    async def test_not_while_the_root_is_active(self, queue: Queue):
        await queue.add_flow(Flow("root", id="root", children=[Flow("leaf", id="leaf")]))
        await finish(queue, "leaf")
        await Worker(queue).claim()

        with pytest.raises(InvalidMove, match="root"):
            await queue.remove("root")

        assert await states(queue, "root", "leaf") == ["active", "completed"]

    async def test_what_another_flow_waits_for_is_spared(self, queue: Queue):
        shared = Flow("shared", id="shared")
        await queue.add_flows([Flow("one", id="one", children=[shared]), Flow("other", id="other", children=[shared])])

        await queue.remove("one")
        assert await states(queue, "one", "shared", "other") == [None, "waiting", "waiting-children"]
        await queue.remove("other")

        assert await states(queue, "shared", "other") == [None, None]

    async def test_a_child_that_is_removed_is_no_longer_waited_for(self, queue: Queue):
        job = await queue.add_flow(Flow("root", children=[Flow("leaf", id="leaf")]))

        await queue.remove("leaf")

        assert await job.state() == "waiting"


@pytest.mark.every_store
async def test_a_parent_that_failed_by_its_children_is_retried_with_them(queue: Queue):
    job = await queue.add_flow(Flow("root", children=[Flow("leaf", id="leaf", queue="etl")]))
    [child] = job.children
    [claimed] = await Worker(child.queue).claim()
    await claimed.fail("no luck")
    assert (await job.refresh()).reason == "child etl/leaf failed: no luck"
    assert await job.children_failures() == {"leaf": "child etl/leaf failed: no luck"}

    await job.retry()

    assert (await job.state(), await child.state()) == ("waiting-children", "waiting")
    await finish(child.queue, "leaf", 5)
    assert (await job.state(), await job.children_results()) == ("waiting", {"leaf": 5})
