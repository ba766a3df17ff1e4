"""Names nodes of flows in errors."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from ..errors import InvalidInput
from ..showing import shown
from .flows import FlowRequest, children_of


def note_place(error: InvalidInput, items: Sequence[FlowRequest], roots: Sequence[FlowRequest]) -> None:
    """Adds to an error which node it is about: the last of the items, which lead down to it from a root."""
    error.place = _place(items, roots)
    if len(items) > 1:
        number = _position(items[-1], children_of(items[-2]))
        error.add_note(f"This is about {_path(items)}, which is child {number} of its parent.")


def circle(path: Sequence[FlowRequest], back: FlowRequest) -> str:
    """The names from a node down to itself."""
    return _path([*path[_position(back, path) :], back])


def _place(items: Sequence[FlowRequest], roots: Sequence[FlowRequest]) -> str:
    """`flow.children[2].children[0]`, for the last of the items from a root downwards."""
    place = "flow" if len(roots) == 1 else f"flows[{_position(items[0], roots)}]"
    for parent, child in pairwise(items):
        place += f".children[{_position(child, children_of(parent))}]"
    return place


def _position(item: FlowRequest, items: Sequence[FlowRequest]) -> int:
    return next(position for position, one in enumerate(items) if one is item)


def _path(items: Sequence[FlowRequest]) -> str:
    """The names from a parent down to one of its descendants."""
    names = [str(getattr(item, "name", shown(item))) for item in items]
    return " -> ".join(names if len(names) <= 10 else [*names[:5], "...", *names[-5:]])
