"""The layout of graphs, without a browser."""

from __future__ import annotations

import random
import time
from itertools import pairwise

import pytest

from ropeway.client.flow_tree import FlowNode
from ropeway.server.dashboard.graphs import ALIKE, MOST_EDGES, flow_graph
from ropeway.server.dashboard.layered import NODE, layout

_random = random.Random(21)
GRAPHS = {
    "one": (1, []),
    "apart": (5, [(0, 1), (2, 3)]),
    "fan": (501, [(0, child) for child in range(1, 501)]),
    "shared": (6, [(0, 1), (0, 2), (1, 3), (2, 3), (0, 3), (3, 4), (0, 5), (5, 4)]),
    "tree": (500, [(_random.randrange(node), node) for node in range(1, 500)]),
    "tangle": (500, [(_random.randrange(node), node) for node in range(1, 500) for _ in range(3)]),
    "chain": (500, [(node, node + 1) for node in range(499)]),
    "long edges": (500, [(node, other) for node in range(499) for other in {node + 1, 499}]),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_nodes_do_not_overlap_and_edges_go_to_the_right(name):
    nodes, edges = GRAPHS[name]
    before = time.process_time()
    found = layout(nodes, edges)
    assert time.process_time() - before < 5, "it would be seconds if a step were quadratic"
    assert found == layout(nodes, edges), "the same graph is the same picture"
    layers: dict[int, list[float]] = {}
    for place in found.nodes:
        layers.setdefault(place.layer, []).append(place.y)
    for ys in map(sorted, layers.values()):
        assert all(b - a >= NODE - 0.001 for a, b in pairwise(ys))
        assert ys[0] >= NODE / 2 - 0.001
        assert ys[-1] <= found.height
    for (a, b), points in zip(edges, found.edges, strict=True):
        assert (points[0], points[-1]) == (found.nodes[a], found.nodes[b])
        assert all(one.layer < other.layer for one, other in pairwise(points))


def test_crossings_that_need_not_be_are_taken_out():
    found = layout(6, [(0, 1), (0, 2), (1, 5), (2, 4), (0, 3), (3, 4)])
    ys = [place.y for place in found.nodes]
    assert (ys[1] < ys[2]) == (ys[5] < ys[4])
    assert (ys[1] < ys[3]) == (ys[5] < ys[4])


def test_a_parent_is_in_the_middle_of_its_children():
    found = layout(4, [(0, 1), (0, 2), (0, 3)])
    assert found.nodes[0].y == sorted(place.y for place in found.nodes[1:])[1]


def test_a_cycle_is_drawn_all_the_same():
    found = layout(3, [(0, 1), (1, 2), (2, 0)])
    assert len({place.layer for place in found.nodes}) == 3
    assert len(found.edges) == 3


def node(name, children=(), hidden=0, queue="mail"):
    return FlowNode(queue, name, None, "pending", children=[*children], hidden=hidden)


def test_a_job_with_two_parents_is_drawn_once_and_what_was_not_read_is_counted():
    shared = node("shared")
    tree = node("root", [node("a", [shared]), node("b", [shared], hidden=9_500)])
    graph = flow_graph(tree, lambda _: True)
    assert [box.label for box in graph.boxes] == ["root", "a", "shared", "b", "and 9,500 more"]
    assert len(graph.paths) == 5


def test_what_a_visitor_may_not_see_is_not_named():
    graph = flow_graph(node("root", [node("plan", queue="secret")]), lambda queue: queue == "mail")
    assert [box.label for box in graph.boxes] == ["root", "(another queue)"]
    assert not any("plan" in str(box) or "secret" in str(box) for box in graph.boxes)


def test_no_picture_has_more_lines_than_can_be_sent():
    children = [node(f"child {number}") for number in range(60)]
    graph = flow_graph(node("root", [node(f"middle {number}", children) for number in range(60)]), lambda _: True)
    assert (len(graph.paths), graph.left_out) == (MOST_EDGES, 60 + 3_600 - MOST_EDGES)
    assert len(graph.boxes) > ALIKE
