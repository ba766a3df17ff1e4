"""Reading a flow from a JSON file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import click
import msgspec

from ..client.flow_plan import MOST_NODES
from ..client.flows import Flow
from ..errors import InvalidInput
from ..job.options import JobOptions
from ..showing import kind_of, shown
from .payloads import read_text
from .spelling import option_from_json
from .stores import near

_OPTIONS: Final = [*JobOptions.__annotations__]
_KEYS: Final = ["name", "data", "queue", "options", "children", "on_child_failure", "on_failure", *_OPTIONS]


def read_flow(file: str, queue: str | None, defaults: Mapping[str, Any]) -> list[Flow]:
    """All jobs of the flow, the root first, each with the name of its queue. The root's may be given as `queue`."""
    text, where = read_text(file)
    try:
        root = msgspec.json.decode(text)
    except RecursionError:
        raise click.UsageError(f"{where} is nested too deeply: add this flow from Python") from None
    except msgspec.DecodeError as error:
        raise click.UsageError(f"{where} is not JSON: {error}") from None
    try:
        return [*_flows(root, queue, defaults)]
    except _Wrong as wrong:
        raise click.UsageError(f"{where}: {wrong}; nothing was added") from None


class _Wrong(Exception):
    def __init__(self, place: str, problem: object) -> None:
        super().__init__(f"{place}: {problem}")


def _flows(root: object, queue: str | None, defaults: Mapping[str, Any]) -> Iterator[Flow]:
    """Parents before children, without recursion."""
    going: list[tuple[object, str, Flow | None]] = [(root, "$", None)]
    count = 0
    while going:
        node, place, parent = going.pop()
        count += 1
        if count > MOST_NODES:
            raise _Wrong(place, f"a flow has at most {MOST_NODES:,} jobs")
        flow = _flow(node, place, str(parent.queue) if parent else queue, defaults)
        if parent is not None:
            parent.children.append(flow)
        assert isinstance(node, dict)
        children = node.get("children", [])
        if not isinstance(children, list):
            raise _Wrong(f"{place}.children", f"is {kind_of(children)}: give a list of jobs")
        going += reversed([(child, f"{place}.children[{number}]", flow) for number, child in enumerate(children)])
        yield flow


def _flow(node: object, place: str, queue: str | None, defaults: Mapping[str, Any]) -> Flow:
    if not isinstance(node, dict):
        raise _Wrong(place, f'is {kind_of(node)}: give an object such as {{"name": "fetch", "data": 1}}')
    for key in node:
        if key not in _KEYS:
            raise _Wrong(f"{place}.{key}", f"is unknown{near(key, _KEYS)}")
    for key, kind in (("name", str), ("options", dict)):
        if key in node and not isinstance(node[key], kind):
            raise _Wrong(f"{place}.{key}", f"cannot be {shown(node[key])}")
    if "name" not in node:
        raise _Wrong(place, 'has no "name"')
    if node.get("queue", queue) is None:
        raise _Wrong(place, 'has no "queue": give it one, or name it as in: ropeway add QUEUE --flow FILE')
    own = {key: node[key] for key in _OPTIONS if key in node} | node.get("options", {})
    try:
        return Flow(
            node["name"],
            node.get("data"),
            queue=node.get("queue", queue),
            on_child_failure=node.get("on_child_failure"),
            on_failure=node.get("on_failure"),
            **{**defaults, **{key: option_from_json(key, value) for key, value in own.items()}},
        )
    except (InvalidInput, click.BadParameter) as error:
        raise _Wrong(place, error) from None
    except TypeError:
        clash = next(key for key in own if key not in _OPTIONS)
        raise _Wrong(f"{place}.options.{clash}", "is no option") from None
