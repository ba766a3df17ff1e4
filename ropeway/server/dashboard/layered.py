"""Layered layout of a directed acyclic graph (Sugiyama): from edges to coordinates. No I/O, always the same answer.

    1. layers       each node is one layer after the last of those before it: every edge goes to the right
    2. waypoints    an edge over several layers gets a point in each layer between, so that nodes make room for it
    3. order        sweeps over the layers put each node near the middle of its neighbours (barycenter); of all sweeps
                    the order with the fewest crossings is kept
    4. places       sweeps move nodes towards their neighbours; in a layer the places nearest to those wished for that
                    keep order and distance are found exactly (isotonic regression, pool adjacent violators)

Each step takes a bounded number of passes over nodes, edges and waypoints; waypoints are left out if there would be
more than `MOST_WAYPOINTS`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

SWEEPS: Final = 8
MOST_WAYPOINTS: Final = 4_000
NODE: Final = 1.0
"""The height of a node with its distance: places are in this unit."""
WAYPOINT: Final = 0.35
"""The height that an edge needs in a layer that it passes."""


class Place(NamedTuple):
    layer: int
    y: float
    """Of its middle; 0 is the top of the highest node."""


class Layout(NamedTuple):
    nodes: list[Place]
    edges: list[list[Place]]
    """For each edge its points: the node it comes from, waypoints, the node it goes to."""
    layers: int
    height: float


def layout(nodes: int, edges: Sequence[tuple[int, int]]) -> Layout:
    """Places nodes 0 to `nodes` - 1. An edge that would close a cycle is drawn, but does not count."""
    if not nodes:
        return Layout([], [[] for _ in edges], 0, 0.0)
    layer_of, forward = _layers(nodes, edges)
    graph = _Graph(layer_of)
    paths = [graph.connect(*edge) if is_forward else [*edge] for edge, is_forward in zip(edges, forward, strict=True)]
    graph.reduce_crossings()
    ys = graph.places()
    places = [Place(layer, y) for layer, y in zip(graph.layer_of, ys, strict=True)]
    return Layout(
        places[:nodes], [[places[point] for point in path] for path in paths], len(graph.layers), max(ys) + NODE / 2
    )


def _layers(nodes: int, edges: Sequence[tuple[int, int]]) -> tuple[list[int], list[bool]]:
    """The layer of each node, the longest way to it; and for each edge whether it goes forward."""
    outgoing: list[list[int]] = [[] for _ in range(nodes)]
    waiting = [0] * nodes
    for a, b in edges:
        outgoing[a].append(b)
        waiting[b] += 1
    layer = [0] * nodes
    is_placed = [False] * nodes
    ready = [node for node in range(nodes) if not waiting[node]]
    later = iter(range(nodes))
    for _ in range(nodes):
        if not ready:
            # Only a cycle is left: it is opened at its first node.
            ready = [next(node for node in later if not is_placed[node])]
        node = ready.pop()
        is_placed[node] = True
        for other in outgoing[node]:
            waiting[other] -= 1
            if not is_placed[other]:
                layer[other] = max(layer[other], layer[node] + 1)
                if not waiting[other]:
                    ready.append(other)
    return layer, [layer[a] < layer[b] for a, b in edges]


class _Graph:
    """Nodes and waypoints in layers, with edges between neighbouring layers alone."""

    def __init__(self, layer_of: list[int]) -> None:
        self.layer_of = [*layer_of]
        self.layers: list[list[int]] = [[] for _ in range(max(layer_of) + 1)]
        self.before: defaultdict[int, list[int]] = defaultdict(list)
        self.after: defaultdict[int, list[int]] = defaultdict(list)
        self._nodes = len(layer_of)
        for node, layer in enumerate(layer_of):
            self.layers[layer].append(node)

    def connect(self, a: int, b: int) -> list[int]:
        """Adds an edge; answers its points."""
        path = [a]
        if len(self.layer_of) + self.layer_of[b] - self.layer_of[a] - 1 <= self._nodes + MOST_WAYPOINTS:
            for layer in range(self.layer_of[a] + 1, self.layer_of[b]):
                path.append(len(self.layer_of))
                self.layers[layer].append(len(self.layer_of))
                self.layer_of.append(layer)
        path.append(b)
        for one, other in pairwise(path):
            if self.layer_of[other] == self.layer_of[one] + 1:
                self.after[one].append(other)
                self.before[other].append(one)
        return path

    def reduce_crossings(self) -> None:
        best, fewest = [[*layer] for layer in self.layers], self._crossings()
        for sweep in range(SWEEPS):
            if not fewest:
                break
            order = range(1, len(self.layers)) if sweep % 2 == 0 else range(len(self.layers) - 2, -1, -1)
            for layer in order:
                self._sort(layer, self.before if sweep % 2 == 0 else self.after)
            crossings = self._crossings()
            if crossings < fewest:
                best, fewest = [[*layer] for layer in self.layers], crossings
        self.layers = best

    def _sort(self, layer: int, neighbours: defaultdict[int, list[int]]) -> None:
        near = layer - 1 if neighbours is self.before else layer + 1
        position = {node: place for place, node in enumerate(self.layers[near])}
        here = self.layers[layer]

        def middle(item: tuple[int, int]) -> float:
            place, node = item
            others = neighbours[node]
            # What has no neighbour keeps its share of the way down.
            own = place * max(1, len(position) - 1) / max(1, len(here) - 1)
            return sum(position[other] for other in others) / len(others) if others else own

        self.layers[layer] = [node for _, node in sorted(enumerate(here), key=lambda item: (middle(item), item[0]))]

    def _crossings(self) -> int:
        """How many pairs of edges cross: inversions, counted with a Fenwick tree."""
        total = 0
        for layer, following in pairwise(self.layers):
            position = {node: place for place, node in enumerate(following)}
            tree = [0] * (len(following) + 1)
            seen = 0
            for node in layer:
                ends = sorted(position[other] for other in self.after[node])
                for end in ends:
                    # Edges from above that end further down.
                    at, not_below = end + 1, 0
                    while at:
                        not_below += tree[at]
                        at &= at - 1
                    total += seen - not_below
                for end in ends:
                    at = end + 1
                    while at < len(tree):
                        tree[at] += 1
                        at += at & -at
                seen += len(ends)
        return total

    def places(self) -> list[float]:
        ys = [0.0] * len(self.layer_of)
        for layer in self.layers:
            for node, y in zip(layer, self._spread(layer, [0.0] * len(layer)), strict=True):
                ys[node] = y
        for sweep in range(SWEEPS):
            order = range(len(self.layers)) if sweep % 2 == 0 else range(len(self.layers) - 1, -1, -1)
            # The last sweeps look at both sides.
            sides = (self.before, self.after) if sweep >= SWEEPS - 2 else ((self.before, self.after)[sweep % 2],)
            for index in order:
                layer = self.layers[index]
                wishes = [self._wish(node, ys, sides) for node in layer]
                for node, y in zip(layer, self._spread(layer, wishes), strict=True):
                    ys[node] = y
        top = min(ys) - NODE / 2
        return [round(y - top, 4) for y in ys]

    def _wish(self, node: int, ys: list[float], sides: tuple[defaultdict[int, list[int]], ...]) -> float:
        others = [other for side in sides for other in side[node]]
        return sum(ys[other] for other in others) / len(others) if others else ys[node]

    def _spread(self, layer: list[int], wishes: list[float]) -> list[float]:
        """The places nearest to the wishes that keep order and distance."""
        offsets: list[float] = []
        at = 0.0
        for before, node in zip([None, *layer], layer, strict=False):
            at += 0.0 if before is None else (self._size(before) + self._size(node)) / 2
            offsets.append(at)
        # Blocks of neighbours that touch: the sum of their wishes without offsets, and their number.
        blocks: list[tuple[float, int]] = []
        for wish, offset in zip(wishes, offsets, strict=True):
            total, count = wish - offset, 1
            while blocks and blocks[-1][0] / blocks[-1][1] > total / count:
                more, many = blocks.pop()
                total, count = total + more, count + many
            blocks.append((total, count))
        starts = [total / count for total, count in blocks for _ in range(count)]
        return [start + offset for start, offset in zip(starts, offsets, strict=True)]

    def _size(self, node: int) -> float:
        return NODE if node < self._nodes else WAYPOINT
