"""Flows as messages: a handler in a process describes them, and its worker, which has the store, makes them again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, TypeAlias, cast

import msgspec

from ..client.flows import Flow, FlowRequest
from ..client.inputs import Input
from ..client.new_jobs import Call
from ..client.queue import Queue
from ..errors import InvalidInput, InvalidOption
from ..job.backoff import Backoff
from ..job.codec import JsonText, decode, encode
from ..job.durations import milliseconds
from ..job.flows import Policy
from ..job.names import job_name, queue_name
from ..job.options import JobOptions, read_options
from ..job.retention import Keep
from ..job.webhook_options import Webhook
from ..showing import shown


class Period(msgspec.Struct, tag="period", frozen=True):
    seconds: float


class Moment(msgspec.Struct, tag="moment", frozen=True):
    at: datetime


class Rule(msgspec.Struct, tag="backoff", frozen=True):
    backoff: Backoff


class Hook(msgspec.Struct, tag="webhook", frozen=True):
    url: str | None
    events: tuple[str, ...]


class Kept(msgspec.Struct, tag="keep", frozen=True):
    seconds: float | None
    count: int | None


Option: TypeAlias = bool | int | float | str | list[str] | Period | Moment | Rule | Kept | Hook | None
"""The value of a job option: types that JSON does not have are wrapped."""


class Described(msgspec.Struct, frozen=True):
    """A node of a flow. It names other nodes by their numbers, so that shared ones stay shared."""

    name: str
    data: JsonText
    options: dict[str, Option]
    queue: str | None
    children: list[int]
    on_child_failure: Policy | None = None
    on_failure: Policy | None = None
    policies: list[Policy | None] | None = None
    """Of a call, one for each child; None for a `Flow`."""
    inputs: dict[str, Input] = {}


class Graph(msgspec.Struct, frozen=True):
    nodes: list[Described]
    """Calls stand behind those that run before them."""
    roots: list[int]


def describe(flows: Iterable[FlowRequest], size_limit: int) -> Graph:
    """Raises for names, data and options that could not be added."""
    if isinstance(flows, str | Mapping | Flow | Call) or not isinstance(flows, Iterable):
        raise InvalidInput(f"this takes several flows, and not {shown(flows)}: give a list of Flow(...)")
    roots = list(flows)
    items = _children_first(roots)
    numbers = {id(item): number for number, item in enumerate(items)}
    nodes = [_described(item, [numbers[id(child)] for child in _children(item)], size_limit) for item in items]
    return Graph(nodes, [numbers[id(root)] for root in roots])


def rebuild(graph: Graph, queue: Queue) -> list[FlowRequest]:
    """The flows again, on the worker's side, for a job of this queue."""
    queues = {queue.name: queue}
    items: list[FlowRequest] = []
    for node in graph.nodes:
        options = cast(JobOptions, {option: _restored(value) for option, value in node.options.items()})
        if node.queue is not None and node.queue not in queues:
            queues[node.queue] = Queue(node.queue, store=queue.store)
        own = None if node.queue is None else queues[node.queue]
        if node.policies is None:
            flow = Flow(node.name, decode(node.data), queue=own, **options)
            flow.on_child_failure, flow.on_failure = node.on_child_failure, node.on_failure
            items.append(flow)
        else:
            before = [cast("Call[Any]", items[number]) for number in node.children]
            earlier = tuple(zip(before, node.policies, strict=True))
            call: Call[Any] = Call(
                node.name, decode(node.data), options, queue=own, earlier=earlier, inputs=node.inputs
            )
            items.append(call)
    for item, node in zip(items, graph.nodes, strict=True):
        if isinstance(item, Flow):
            # Now that all are made: a flow may be a circle, which is refused when it is planned.
            item.children += [items[number] for number in node.children]
    return [items[number] for number in graph.roots]


def _children(item: FlowRequest) -> list[FlowRequest]:
    if isinstance(item, Call):
        return [call for call, _ in item.earlier]
    if isinstance(item, Flow):
        return item.children
    raise InvalidInput(f"a flow is made of Flow(...) or task.call(...), and not of {shown(item)}")


def _children_first(roots: list[FlowRequest]) -> list[FlowRequest]:
    ordered: list[FlowRequest] = []
    entered: set[int] = set()
    going = [(root, False) for root in reversed(roots)]
    while going:
        item, is_left = going.pop()
        if is_left:
            ordered.append(item)
        elif id(item) not in entered:
            entered.add(id(item))
            going += [(item, True), *((child, False) for child in reversed(_children(item)))]
    return ordered


def _described(item: FlowRequest, children: list[int], size_limit: int) -> Described:
    queue: Any = item.queue
    options: Mapping[str, Any] = item.options
    if isinstance(queue, Queue):
        # The worker may not have this object, with its defaults.
        webhook = {} if queue.webhook is None else {"webhook": queue.webhook}
        options, queue = {**queue.defaults, **webhook, **options}, queue.name
    read_options(options, beside_data=True)
    node = Described(
        job_name(item.name),
        encode(item.data, "data", size_limit),
        {option: _plain(value) for option, value in options.items()},
        None if queue is None else queue_name(queue),
        children,
    )
    if isinstance(item, Call):
        policies = [policy for _, policy in item.earlier]
        return msgspec.structs.replace(node, policies=policies, inputs=dict(item.inputs))
    return msgspec.structs.replace(node, on_child_failure=item.on_child_failure, on_failure=item.on_failure)


def _plain(value: Any) -> Option:  # noqa: PLR0911 - one for each type
    match value:
        case None | bool() | int() | float() | str():
            return value
        case timedelta():
            return Period(value.total_seconds())
        case datetime():
            return Moment(value)
        case Backoff():
            return Rule(value)
        case Keep():
            return Kept(None if value.age is None else milliseconds(value.age, "age") / 1000, value.count)
        case Webhook():
            # Without its secret, which the worker's queue has stored.
            return Hook(value.url, value.events)
        case Iterable():
            return [*value]
    raise InvalidOption("options", f"of a flow in a process cannot be {shown(value)}")


def _restored(value: Option) -> Any:
    match value:
        case Period(seconds):
            return timedelta(seconds=seconds)
        case Moment(at):
            return at
        case Rule(backoff):
            return backoff
        case Kept(seconds, count):
            return Keep(age=seconds, count=count)
        case Hook(url, events):
            return Webhook(url, events=events)
    return value
