"""Reading flows as they stand, and operating on whole trees."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

import msgspec

from ..job.codec import Json, decode
from ..job.flows import CHILD_STATES, ChildState, Parent, Policy
from ..job.record import JobRecord
from ..job.states import FINAL, State
from ..store.contract import Store
from ..store.values import BATCH, ChildStatus
from .snapshot import Snapshot, snapshot_of

Key: TypeAlias = tuple[str, str]
"""Queue and id."""
DEEPEST: Final = 10_000
ALL: Final = 2**53
"""No limit."""
AS_ADDED: Final = (CHILD_STATES,)
URGENT_FIRST: Final[tuple[tuple[ChildState, ...], ...]] = (("failed", "cancelled"), ("pending",), ("completed",))
"""Orders of children, for readers that do not see all: groups of states, one after the other."""


class FlowNode(msgspec.Struct):
    """A job of a flow at the moment of reading. One with two parents is the same object under both."""

    queue: str
    id: str
    snapshot: Snapshot | None
    """None if it was removed; `state` then is what its parent knows."""
    state: State | ChildState
    policy: Policy | None = None
    """What becomes of its parent if it fails; None for the root."""
    reason: str | None = None
    result: Json = None
    children: list[FlowNode] = []
    counts: dict[ChildState, int] = {}
    """Its children by state, as it knows them; empty if none was read."""
    hidden: int = 0
    """Children that are not listed, because of `depth` or `limit`."""

    @property
    def name(self) -> str | None:
        return None if self.snapshot is None else self.snapshot.name

    def walk(self) -> Iterator[FlowNode]:
        """All nodes, parents first, each once."""
        seen: set[int] = set()
        going: list[FlowNode] = [self]
        while going:
            node = going.pop()
            if id(node) not in seen:
                seen.add(id(node))
                yield node
                going += reversed(node.children)


async def read_tree(
    store: Store,
    root: JobRecord,
    depth: int,
    limit: int,
    order: Sequence[tuple[ChildState, ...]] = AS_ADDED,
) -> FlowNode:
    """Reads level by level: a call or more for the children of each parent, one for the jobs of each queue."""
    top = node_of(root)
    nodes: dict[Key, FlowNode] = {(root.queue, root.id): top}
    level = [(top, root.children)]
    for step in range(depth + 1):
        found: list[tuple[FlowNode, ChildStatus]] = []
        for node, count in level:
            room = limit - len(nodes) - len(found)
            if not count:
                continue
            if step == depth or room <= 0:
                node.hidden = count
                continue
            listed, node.counts = await _children_by(order, store, node, room)
            node.hidden = max(0, sum(node.counts.values()) - len(listed))
            found += ((node, child) for child in listed)
        records = await _records(store, [(child.queue, child.id) for _, child in found])
        level = []
        for parent, child in found:
            key = child.queue, child.id
            if key not in nodes:
                record = records.get(key)
                if record is not None and Parent(parent.queue, parent.id) not in record.parents:
                    record = None  # Another job that has got the id of a child that is gone.
                nodes[key] = node = _removed(child) if record is None else node_of(record, child.policy)
                level.append((node, record.children if record else 0))
            parent.children.append(nodes[key])
        if not level:
            break
    return top


async def _children_by(
    order: Sequence[tuple[ChildState, ...]], store: Store, node: FlowNode, limit: int
) -> tuple[list[ChildStatus], dict[ChildState, int]]:
    # By key: between two reads a child may move from one group to the next.
    listed: dict[Key, ChildStatus] = {}
    counts: dict[ChildState, int] = {}
    for states in order:
        some, counts = await read_children(store, node.queue, node.id, limit - len(listed), states)
        listed |= {(child.queue, child.id): child for child in some}
        if len(listed) >= min(limit, sum(counts.values())):
            break
    return [*listed.values()], counts


async def read_children(
    store: Store, queue: str, id: str, limit: int, states: tuple[ChildState, ...] = CHILD_STATES
) -> tuple[list[ChildStatus], dict[ChildState, int]]:
    """At most `limit` children, page by page, and the number of all by state."""
    found: list[ChildStatus] = []
    counts: dict[ChildState, int] = {}
    after: str | None = None
    while len(found) < limit:
        page = await store.children(queue, id, states=states, after=after, limit=min(BATCH, limit - len(found)))
        if page is None:
            break
        found += page.children
        counts, after = page.counts, page.next
        if after is None:
            break
    return found, counts


async def results(store: Store, queue: str, id: str) -> dict[str, Json]:
    """The results of a job's completed children, by child id."""
    children, _ = await read_children(store, queue, id, ALL, ("completed",))
    return {child.id: _result(child) for child in children}


async def failures(store: Store, queue: str, id: str) -> dict[str, str]:
    """The reasons of a job's failed and cancelled children, by child id."""
    children, _ = await read_children(store, queue, id, ALL, ("failed", "cancelled"))
    return {child.id: child.reason or "" for child in children}


async def descendants(store: Store, root: JobRecord) -> list[FlowNode]:
    """All jobs below a root, except those for which a job of another flow waits, and what is below these."""
    tree = await read_tree(store, root, DEEPEST, ALL)
    nodes = [*tree.walk()]
    spared = await _awaited_elsewhere(store, nodes)
    return [
        node for node in nodes if node is not tree and node.snapshot is not None and (node.queue, node.id) not in spared
    ]


async def _awaited_elsewhere(store: Store, nodes: list[FlowNode]) -> set[Key]:
    inside = {(node.queue, node.id) for node in nodes[1:]}
    root = nodes[0].queue, nodes[0].id
    outside: defaultdict[Key, list[FlowNode]] = defaultdict(list)
    for node in nodes[1:]:
        for parent in node.snapshot.parents if node.snapshot else ():
            if (key := (parent.queue, parent.id)) not in inside and key != root:
                outside[key].append(node)
    waiting = [key for key, record in (await _records(store, [*outside])).items() if record.state not in FINAL]
    return {(below.queue, below.id) for key in waiting for node in outside[key] for below in node.walk()}


def by_queue(nodes: list[FlowNode]) -> dict[str, list[str]]:
    grouped: defaultdict[str, list[str]] = defaultdict(list)
    for node in nodes:
        grouped[node.queue].append(node.id)
    return grouped


def unfinished(nodes: list[FlowNode]) -> list[FlowNode]:
    return [node for node in nodes if node.state not in FINAL]


def node_of(record: JobRecord, policy: Policy | None = None) -> FlowNode:
    """A job of a flow without its children."""
    snapshot = snapshot_of(record)
    return FlowNode(record.queue, record.id, snapshot, record.state, policy, record.reason, snapshot.result)


def _removed(child: ChildStatus) -> FlowNode:
    return FlowNode(child.queue, child.id, None, child.state, child.policy, child.reason, _result(child))


def _result(child: ChildStatus) -> Json:
    return None if child.result is None else decode(child.result)


async def _records(store: Store, keys: list[Key]) -> dict[Key, JobRecord]:
    grouped: defaultdict[str, list[str]] = defaultdict(list)
    for queue, id in dict.fromkeys(keys):
        grouped[queue].append(id)
    found: dict[Key, JobRecord] = {}
    for queue, ids in grouped.items():
        for start in range(0, len(ids), BATCH):
            records = await store.get(queue, ids[start : start + BATCH])
            found |= {(queue, record.id): record for record in records if record is not None}
    return found
