"""Flows as they are added and read, on every store."""

from __future__ import annotations

import pytest

from ropeway import Flow, InvalidInput, Queue


async def test_siblings_are_added_in_the_order_in_which_they_are_listed(queue: Queue):
    shared = Flow("shared")
    left = Flow("left", children=[Flow("a"), shared, Flow("b")])
    await queue.add_flow(Flow("root", children=[left, Flow("right", children=[shared]), Flow("c")]))

    assert [job.name for job in await queue.find("waiting")] == ["a", "b", "shared", "c"]
    assert [job.name for job in await queue.find("waiting-children")] == ["root", "left", "right"]


async def test_an_invalid_job_of_a_flow_is_named_by_its_place(queue: Queue):
    flow = Flow("root", children=[Flow("a"), Flow("b", children=[Flow("c", attempts=0)])])

    with pytest.raises(InvalidInput) as one:
        await queue.add_flow(flow)
    with pytest.raises(InvalidInput) as several:
        await queue.add_flows([Flow("other"), flow])

    assert one.value.place == "flow.children[1].children[0]"
    assert one.value.__notes__ == ["This is about root -> b -> c, which is child 0 of its parent."]
    assert several.value.place == "flows[1].children[1].children[0]"
    assert sum((await queue.counts()).values()) == 0


async def test_a_tree_counts_children_and_what_is_hidden(queue: Queue):
    inner = Flow("inner", children=[Flow("leaf") for _ in range(3)])
    job = await queue.add_flow(Flow("root", children=[inner, Flow("a"), Flow("b")]))

    whole = await queue.flow(job.id)
    shallow = await queue.flow(job.id, depth=1)
    few = await queue.flow(job.id, limit=2)

    assert [node.name for node in whole.walk()] == ["root", "inner", "leaf", "leaf", "leaf", "a", "b"]
    assert (whole.counts["pending"], whole.hidden) == (3, 0)
    assert [node.hidden for node in shallow.walk()] == [0, 3, 0, 0]
    assert [(node.name, node.hidden) for node in few.walk()] == [("root", 2), ("inner", 3)]
