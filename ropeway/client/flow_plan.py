"""From flows, as users describe them, to a bundle for the store, and from its answers to handles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec
from msgspec.structs import replace

from ..errors import DuplicateJob, InvalidInput, InvalidOption
from ..job.flows import DEFAULT_POLICY, Child, Parent, Policy
from ..job.options import stored_options
from ..job.record import NewJob
from ..showing import shown
from ..store.values import Added
from .bundles import has_no_defaults, job_of
from .flow_keys import refuse_keys
from .flows import Flow, FlowHandle, FlowRequest
from .inputs import taken_from
from .new_jobs import Call, checked_call, plain_job

if TYPE_CHECKING:
    from .queue import Queue

MOST_NODES: Final = 100_000
"""Jobs of one call: a store adds them in one step, in which other callers wait."""
_encode = msgspec.json.Encoder().encode


class Node(msgspec.Struct, frozen=True, gc=False):
    """One job of a flow on its way into the store.

    `gc=False`: it lives as long as its plan, and nothing that it holds leads back to it.
    """

    call: Call[Any]
    queue: Queue
    job: NewJob
    """It has the parent by which it was found first; `Plan` knows all."""
    links: Sequence[tuple[FlowRequest, Policy]]
    """Its children, each with the policy for its failure."""


Parents: TypeAlias = tuple[Parent, ...]
Path: TypeAlias = list[tuple[FlowRequest, Iterator[tuple[FlowRequest, Policy]], Parents]]
"""The nodes from a root down to the current one, each with its remaining children, and itself as their parent."""


class Plan:
    """The jobs of some flows, parents before children, and the handles for them."""

    def __init__(self, queue: Queue, flows: Iterable[FlowRequest]) -> None:
        self._queue = queue
        self._queues: dict[str, Queue] = {}
        self._nodes: dict[int, Node] = {}
        """By the identity of the object that describes it."""
        self._parents: dict[int, Parents] = {}
        self._plain: dict[Queue, set[str]] = {}
        """Names that were checked, and whose jobs have no options but their own."""
        self._are_trees = True
        """False if a node was found more than once."""
        if isinstance(flows, str | Mapping | Flow | Call) or not isinstance(flows, Iterable):
            raise InvalidInput(f"this takes several flows, and not {shown(flows)}: give a list of Flow(...)")
        self.roots: list[FlowRequest] = list(flows)
        for root in self.roots:
            self._walk(root)
        self._order = self._sorted()
        self._refuse_same_ids()

    @property
    def bundle(self) -> list[NewJob]:
        parents = self._parents
        jobs = [
            # Most have no children, and are complete.
            self._complete(key) if node.links or parents.get(key, ()) is not node.job.parents else node.job
            for key, node in zip(self._order, map(self._nodes.__getitem__, self._order), strict=True)
        ]
        refuse_keys(jobs)
        return jobs

    @property
    def undeclared(self) -> list[Queue]:
        """Queues of the flow whose webhook has settings that are not stored yet."""
        return [
            queue
            for queue in {id(node.queue): node.queue for node in self._nodes.values()}.values()
            if queue.webhook_settings.is_pending
        ]

    def adopt(self, parent: Parent) -> None:
        """Makes the roots children of a job that exists."""
        for root in self.roots:
            self._parents[id(root)] = (*self._parents.get(id(root), ()), parent)

    def links(self, policy: Policy | None) -> tuple[Child, ...]:
        """The roots, as children of a job that exists; each with its own policy, or this one."""
        jobs = [self._nodes[id(root)].job for root in self.roots]
        return tuple(
            Child(job.queue, job.id, _policy_of(root, policy)) for root, job in zip(self.roots, jobs, strict=True)
        )

    def handles(self, answers: Sequence[Added]) -> list[FlowHandle]:
        """Handles on the roots. Raises `DuplicateJob` if an id was taken."""
        made: dict[int, FlowHandle] = {}
        for key, answer in reversed([*zip(self._order, answers, strict=True)]):
            node = self._nodes[key]
            if answer.verdict == "conflict":
                error = DuplicateJob(node.job.queue, answer.id, is_child=key in self._parents)
                error.add_note("Nothing of the flow was stored.")
                raise error
            call = node.call
            # By position, which costs half as much.
            handle: FlowHandle = FlowHandle(node.queue, answer.id, node.job.name, call.data)
            if call.read_result is not None:
                handle = FlowHandle(node.queue, answer.id, node.job.name, call.data, read_result=call.read_result)
            handle.created = answer.verdict == "created"
            handle.deduplicated = answer.verdict == "deduplicated"
            handle.children = ()
            if node.links:
                handle.children = tuple(
                    made[id(child)] for child, _ in node.links if handle.created or not self._is_fresh(child)
                )
            made[key] = handle
        return [made[id(root)] for root in self.roots]

    def _is_fresh(self, item: FlowRequest) -> bool:
        """True if its id was made by this plan: a flow that was found has other children."""
        return self._nodes[id(item)].job.is_fresh

    def _walk(self, root: FlowRequest) -> None:
        """Depth first, without recursion: flows may be deep."""
        path: Path = []
        on_path: set[int] = set()
        nodes, parents = self._nodes, self._parents

        def enter(item: FlowRequest, queue: Queue, parents: Parents) -> bool:
            """Returns whether the item has children, and they come next."""
            if len(nodes) == MOST_NODES:
                raise InvalidInput(f"a flow has at most {MOST_NODES:,} jobs: add it in parts")
            node = nodes[id(item)] = self._checked_node(item, queue, parents, path)
            if not node.links:
                return False
            path.append((item, iter(node.links), (Parent(node.job.queue, node.job.id),)))
            on_path.add(id(item))
            return True

        if id(root) in nodes:
            self._are_trees = False
        else:
            enter(root, self._queue, ())
        while path:
            item, children, parent = path[-1]
            queue = nodes[id(item)].queue
            for child, _ in children:
                key = id(child)
                if key in on_path:
                    raise InvalidInput(f"a flow cannot wait for itself: {_circle(path, child)}")
                if key in nodes:
                    self._are_trees = False
                    parents[key] = (*parents.get(key, ()), *parent)
                    continue
                parents[key] = parent
                if enter(child, queue, parent):
                    break
            else:
                path.pop()
                on_path.discard(id(item))

    def _sorted(self) -> list[int]:
        """Parents before children, and siblings as they were listed: so they are claimed."""
        if self._are_trees:
            # They were walked in this order.
            return [*self._nodes]
        order: list[int] = []
        unplaced = {key: len(parents) for key, parents in self._parents.items()}
        going = [key for key in dict.fromkeys(map(id, self.roots)) if key not in unplaced][::-1]
        while going:
            order.append(key := going.pop())
            for child, _ in reversed(self._nodes[key].links):
                unplaced[id(child)] -= 1
                if not unplaced[id(child)]:
                    going.append(id(child))
        return order

    def _checked_node(self, item: FlowRequest, queue: Queue, parents: Parents, path: Path) -> Node:
        """Names the node in the error, if it cannot be added."""
        try:
            return self._node(item, queue, parents)
        except InvalidInput as error:
            items = [*(parent for parent, *_ in path), item]
            error.place = self._place(items)
            if path:
                number = _position(item, self._children(path[-1][0]))
                error.add_note(f"This is about {_path(items)}, which is child {number} of its parent.")
            raise

    def _place(self, items: Sequence[FlowRequest]) -> str:
        """`flow.children[2].children[0]`, for the last of the items from a root downwards."""
        place = "flow" if len(self.roots) == 1 else f"flows[{_position(items[0], self.roots)}]"
        for parent, child in pairwise(items):
            place += f".children[{_position(child, self._children(parent))}]"
        return place

    def _children(self, item: FlowRequest) -> list[FlowRequest]:
        return [child for child, _ in self._nodes[id(item)].links]

    def _node(self, item: FlowRequest, parents_queue: Queue, parents: Parents) -> Node:
        if isinstance(item, Call):
            checked_call(item)
            queue = parents_queue if item.queue is None else self._same_store(item.queue)
            earlier: dict[int, tuple[FlowRequest, Policy]] = {}
            for one, policy in item.earlier:
                earlier[id(one)] = one, policy or DEFAULT_POLICY
            return Node(item, queue, job_of(queue, item, is_alone=False, parents=parents), [*earlier.values()])
        if not isinstance(item, Flow):
            raise InvalidInput(f"a flow is made of Flow(...) or task.call(...), and not of {shown(item)}")
        queue = parents_queue if item.queue is None else self._queue_of(item.queue, parents_queue)
        call: Call[Any] = Call(item.name, item.data, item.options)
        plain = self._plain.setdefault(queue, set())
        if not item.options and type(item.name) is str and item.name in plain:
            job = plain_job(queue.name, item.name, item.data, queue.size_limit, parents)
        else:
            if inputs := queue.tasks.inputs(item.name, item.data):
                call = replace(call, inputs=inputs)
            job = job_of(queue, call, is_alone=False, parents=parents)
            if has_no_defaults(queue, job.name):
                plain.add(job.name)
        if not item.children:
            return Node(call, queue, job, ())
        children: dict[int, tuple[FlowRequest, Policy]] = {}
        for child in item.children:
            children[id(child)] = child, _policy_of(child, item.on_child_failure)
        return Node(call, queue, job, [*children.values()])

    def _queue_of(self, given: Queue | str, parents: Queue) -> Queue:
        if not isinstance(given, str):
            return self._same_store(given)
        if given in (parents.name, self._queue.name):
            return parents if given == parents.name else self._queue
        if given not in self._queues:
            self._queues[given] = type(self._queue)(given, store=self._queue.store)
        return self._queues[given]

    def _same_store(self, queue: Queue) -> Queue:
        if not isinstance(queue, type(self._queue)):
            raise InvalidOption("queue", f"cannot be {shown(queue)}: give its name, or a Queue")
        if not queue.shares_store_with(self._queue):
            raise InvalidInput(
                f"{queue!r} is in another store than {self._queue!r}: a flow is in one store. "
                "Give both queues store=connect(url)"
            )
        return queue

    def _complete(self, key: int) -> NewJob:
        node = self._nodes[key]
        parents = self._parents.get(key, ())
        if len(parents) > 1:
            parents = tuple(dict.fromkeys(parents))
        if not node.links:
            return node.job if parents is node.job.parents else replace(node.job, parents=parents)
        jobs = [self._nodes[id(child)].job for child, _ in node.links]
        links = tuple(Child(job.queue, job.id, policy) for job, (_, policy) in zip(jobs, node.links, strict=True))
        options = node.job.options
        if node.call.inputs:
            takes = taken_from(node.job.name, node.call.inputs, jobs)
            options = _encode(replace(stored_options(options), takes=takes)).decode()
        return replace(node.job, parents=parents, children=links, options=options)

    def _refuse_same_ids(self) -> None:
        seen: set[tuple[str, str]] = set()
        for key in self._order:
            node = self._nodes[key]
            job = node.job
            if not job.is_fresh:
                if (job.queue, job.id) in seen:
                    raise InvalidInput(
                        f"two jobs of the flow have the id {job.id!r} in {job.queue!r}: give each its own"
                    )
                seen.add((job.queue, job.id))
            if node.call.inputs and not node.links:
                taken_from(job.name, node.call.inputs, ())


def _policy_of(child: FlowRequest, parents: Policy | None) -> Policy:
    """A child's own policy, or that of its parent."""
    # Without children of its own, `on_child_failure` can only be about the node itself.
    own: Policy | None = None
    if isinstance(child, Flow):
        own = child.on_failure if child.children else child.on_failure or child.on_child_failure
    return own or parents or DEFAULT_POLICY


def _circle(path: Path, back: FlowRequest) -> str:
    items = [item for item, *_ in path]
    return _path([*items[_position(back, items) :], back])


def _position(item: FlowRequest, items: Sequence[FlowRequest]) -> int:
    return next(position for position, one in enumerate(items) if one is item)


def _path(items: Sequence[FlowRequest]) -> str:
    """The names from a parent down to one of its descendants."""
    names = [str(getattr(item, "name", shown(item))) for item in items]
    return " -> ".join(names if len(names) <= 10 else [*names[:5], "...", *names[-5:]])
