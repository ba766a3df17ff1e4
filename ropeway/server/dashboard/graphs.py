"""Flows as pictures: from the jobs of a flow to the shapes of an SVG, whose colours are in the style sheet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from ...client.flow_tree import FlowNode
from ...showing import plural
from .formats import number
from .layered import Layout, Place, layout

WIDTH: Final = 190
HEIGHT: Final = 42
COLUMN: Final = WIDTH + 64
ROW: Final = HEIGHT + 12
MARGIN: Final = 8
LETTERS: Final = 23
"""Of a name that fit in."""
MOST_EDGES: Final = 2_000
ALIKE: Final = 8
"""Children of one parent, with one name and state, that are drawn one by one; more are folded into one box."""


class Shape(NamedTuple):
    """A job, or a note in its place, before it has one."""

    text: str
    state: str
    """"" for a note."""
    queue: str = ""
    id: str = ""
    title: str = ""
    kind: str = ""
    """`own` for the job whose page it is, `note` for jobs that are not drawn, `gone` for removed ones."""


class Box(NamedTuple):
    shape: Shape
    x: float
    y: float
    label: str


class Graph(NamedTuple):
    boxes: list[Box]
    paths: list[str]
    width: float
    height: float
    summary: str
    """The same in words, for those who do not see it."""
    left_out: int
    """Edges that are not drawn."""


def flow_graph(tree: FlowNode, may_see: Callable[[str], bool]) -> Graph:
    """The jobs of a flow, each once, parents left of their children."""
    return draw(*_tree_shapes(tree, may_see))


def family_graph(tree: FlowNode, parents: Iterable[FlowNode], may_see: Callable[[str], bool]) -> Graph:
    """One job between those that wait for it and those that it waits for: `tree` is one level deep."""
    shapes, edges = _tree_shapes(tree, may_see)
    for parent in parents:
        edges.append((len(shapes), 0))
        shapes.append(_shape(parent, may_see(parent.queue)))
    return draw(shapes, edges)


def short_id(id: str) -> str:
    """As lists of jobs show it."""
    return f"…{id[-12:]}" if len(id) > 20 else id


def _tree_shapes(tree: FlowNode, may_see: Callable[[str], bool]) -> tuple[list[Shape], list[tuple[int, int]]]:
    """The jobs, and notes in place of those that are not drawn."""
    nodes = [*tree.walk()]
    folded = _folded(nodes)
    drawn = [node for node in nodes if id(node) not in folded]
    place = {id(node): index for index, node in enumerate(drawn)}
    shapes = [_shape(node, may_see(node.queue), is_own=node is tree) for node in drawn]
    edges: list[tuple[int, int]] = []
    for node in drawn:
        own = place[id(node)]
        edges += ((own, place[id(child)]) for child in node.children if id(child) in place)
        alike = Counter(
            (_shape(child, may_see(child.queue)).text, child.state) for child in node.children if id(child) in folded
        )
        notes = [
            Shape(f"and {number(count)} {name}", state, node.queue, node.id) for (name, state), count in alike.items()
        ]
        if node.hidden > 0:
            told = f"and {number(node.hidden)} more" if node.children else plural(node.hidden, "child", "children")
            notes.append(Shape(told, "", node.queue, node.id))
        for note in notes:
            edges.append((own, len(shapes)))
            seen = note if may_see(node.queue) else note._replace(queue="", id="")
            shapes.append(seen._replace(kind="note", title=f"children of {node.name or short_id(node.id)}"))
    return shapes, edges


def _folded(nodes: list[FlowNode]) -> set[int]:
    """Of many jobs of one parent that have the same name and state, and no children, those after the first."""
    parents = Counter(id(child) for node in nodes for child in node.children)
    folded: set[int] = set()
    for node in nodes:
        alike: dict[tuple[str, str, str], list[FlowNode]] = {}
        for child in node.children:
            if not child.children and child.hidden <= 0 and parents[id(child)] == 1 and child.snapshot is not None:
                alike.setdefault((child.queue, child.snapshot.name, child.state), []).append(child)
        folded.update(id(child) for group in alike.values() if len(group) > ALIKE for child in group[ALIKE - 1 :])
    return folded


def _shape(node: FlowNode, is_visible: bool, *, is_own: bool = False) -> Shape:
    if not is_visible:
        return Shape("(another queue)", node.state, kind="gone")
    name = node.name or short_id(node.id)
    kind = "own" if is_own else "gone" if node.snapshot is None else ""
    return Shape(name, node.state, node.queue, node.id, f"{name}, {node.queue}, {node.id}", kind)


def draw(shapes: Sequence[Shape], edges: Sequence[tuple[int, int]]) -> Graph:
    drawn = edges[:MOST_EDGES]
    found = layout(len(shapes), drawn)
    boxes = [
        Box(shape, _x(place.layer), round(_y(place.y) - HEIGHT / 2, 1), _clipped(shape.text))
        for shape, place in zip(shapes, found.nodes, strict=True)
    ]
    return Graph(
        boxes,
        [_path(points) for points in found.edges],
        MARGIN * 2 + found.layers * COLUMN - (COLUMN - WIDTH),
        round(MARGIN * 2 + found.height * ROW, 1),
        _summary(shapes, found),
        len(edges) - len(drawn),
    )


def _summary(shapes: Sequence[Shape], found: Layout) -> str:
    jobs = sum(bool(shape.state) for shape in shapes)
    return f"{plural(jobs, 'job')} in {plural(found.layers, 'level')}"


def _clipped(text: str) -> str:
    return text if len(text) <= LETTERS else f"{text[: LETTERS - 1]}…"


def _x(layer: int) -> float:
    return MARGIN + layer * COLUMN


def _y(y: float) -> float:
    return MARGIN + y * ROW


def _path(points: Sequence[Place]) -> str:
    """From the right side of one node to the left side of the next, straight through the layers between."""
    x, y = _x(points[0].layer) + WIDTH, _y(points[0].y)
    parts = [f"M{x:g} {y:.1f}"]
    for point in points[1:]:
        to, down = _x(point.layer), _y(point.y)
        middle = (x + to) / 2
        parts.append(f"C{middle:g} {y:.1f} {middle:g} {down:.1f} {to:g} {down:.1f}")
        if point is not points[-1]:
            parts.append(f"h{WIDTH}")
        x, y = to + WIDTH, down
    return "".join(parts)
