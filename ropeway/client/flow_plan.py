"""From flows, as users describe them, to a bundle for the store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import msgspec
from msgspec.structs import replace

from ..errors import InvalidInput, InvalidOption
from ..job.flows import Child, Parent, Policy
from ..job.options import stored_options
from ..job.record import NewJob
from ..showing import shown
from ..store.values import Added
from .bundles import has_no_defaults, job_of
from .flow_handles import FlowHandles, Key
from .flow_keys import refuse_keys
from .flow_places import circle, note_place
from .flows import Flow, FlowHandle, FlowRequest, children_of, policies_in, policies_of
from .inputs import Input, taken_from
from .new_jobs import Call, checked_call, plain_job

if TYPE_CHECKING:
    from .queue import Queue

MOST_NODES: Final = 100_000
"""Jobs of one call: a store adds them in one step, in which other callers wait."""
_encode = msgspec.json.Encoder().encode

Parents: TypeAlias = tuple[Parent, ...]


class Below(NamedTuple):
    """A node that has children, while these are walked."""

    item: FlowRequest
    queue: Queue
    parents: Parents
    """The node itself, as its children name it."""
    left: Iterator[FlowRequest]


class Plan:
    """The jobs of some flows, parents before children, and the handles on them."""

    def __init__(self, queue: Queue, flows: Iterable[FlowRequest]) -> None:
        self._queue = queue
        self._named: dict[str, Queue] = {queue.name: queue}
        """Queues that nodes give by name."""
        self._queues: dict[str, Queue] = {queue.name: queue}
        """The first of each name, for handles."""
        self._jobs: dict[int, NewJob] = {}
        """By the identity of the object that describes it; with the parent by which it was found first."""
        self._families: dict[int, tuple[FlowRequest, list[FlowRequest]]] = {}
        """The nodes that have children, and these."""
        self._parents: dict[int, Parents] = {}
        """Of nodes that were found more than once, and of roots that a job adopts."""
        self._inputs: dict[int, Mapping[str, Input]] = {}
        self._readers: dict[Key, Callable[[Any], Any]] = {}
        self._own_ids: set[Key] = set()
        self._plain: dict[Queue, set[str]] = {}
        """Names that were checked, and whose jobs have no options but their own."""
        self._undeclared: dict[Queue, None] = {}
        if isinstance(flows, str | Mapping | Flow | Call) or not isinstance(flows, Iterable):
            raise InvalidInput(f"this takes several flows, and not {shown(flows)}: give a list of Flow(...)")
        self.roots: list[FlowRequest] = list(flows)
        for root in self.roots:
            self._walk(root)
        if self._parents:
            # Otherwise they were walked in order.
            self._jobs = {key: self._jobs[key] for key in self._sorted()}

    @property
    def bundle(self) -> list[NewJob]:
        """All jobs: parents before children, and siblings as they were listed, because so they are claimed."""
        for key in {**self._families, **self._parents, **self._inputs}:
            self._jobs[key] = self._complete(key)
        jobs = [*self._jobs.values()]
        refuse_keys(jobs)
        return jobs

    @property
    def undeclared(self) -> list[Queue]:
        """Queues of the flow whose webhook has settings that are not stored yet."""
        return [*self._undeclared]

    def adopt(self, parent: Parent) -> None:
        """Makes the roots children of a job that exists."""
        for root in self.roots:
            self._note_again(root, (parent,))

    def links(self, policy: Policy | None) -> tuple[Child, ...]:
        """The roots, as children of a job that exists; each with its own policy, or this one."""
        return _links_to([self._jobs[id(root)] for root in self.roots], policies_of(self.roots, policy))

    def handles(self, bundle: Sequence[NewJob], answers: Sequence[Added]) -> list[FlowHandle]:
        """Handles on the roots, from the answers to the bundle. Raises `DuplicateJob` if an id was taken."""
        handles = FlowHandles(bundle, answers, self._queues, self._readers)
        return [handles.of(self._jobs[id(root)]) for root in self.roots]

    def _walk(self, root: FlowRequest) -> None:
        """Depth first, without recursion: flows may be deep."""
        path: list[Below] = []
        on_path: set[int] = set()
        if id(root) in self._jobs:
            self._note_again(root, ())
        else:
            self._enter(root, self._queue, (), path)
        while path:
            node = path[-1]
            on_path.add(id(node.item))
            self._walk_below(node, path, on_path)
            if path[-1] is node:
                path.pop()
                on_path.discard(id(node.item))

    def _walk_below(self, node: Below, path: list[Below], on_path: set[int]) -> None:
        """Walks the children of a node, as far as the next one that has children itself, which is put on the path."""
        jobs, queue, parents = self._jobs, node.queue, node.parents
        name, size_limit, plain = queue.name, queue.size_limit, self._plain.setdefault(queue, set())
        for child in node.left:
            key = id(child)
            if key in jobs:
                if key in on_path:
                    raise InvalidInput(f"a flow cannot wait for itself: {circle([one.item for one in path], child)}")
                self._note_again(child, parents)
            elif (
                # Most are: all that a child costs beyond a plain job is in this branch.
                type(child) is Flow
                and not (child.children or child.options or child.queue is not None)
                and type(child.name) is str
                and child.name in plain
                and len(jobs) < MOST_NODES
            ):
                try:
                    jobs[key] = plain_job(name, child.name, child.data, size_limit, parents)
                except InvalidInput as error:
                    note_place(error, [*(one.item for one in path), child], self.roots)
                    raise
            elif self._enter(child, queue, parents, path):
                return

    def _note_again(self, item: FlowRequest, parents: Parents) -> None:
        key = id(item)
        self._parents[key] = *self._parents.get(key, self._jobs[key].parents), *parents

    def _enter(self, item: FlowRequest, queue: Queue, parents: Parents, path: list[Below]) -> bool:
        """Makes the job of a node. If that has children, it is put on the path, and True returned."""
        if len(self._jobs) == MOST_NODES:
            raise InvalidInput(f"a flow has at most {MOST_NODES:,} jobs: add it in parts")
        try:
            queue, job = self._job_of(item, queue, parents)
        except InvalidInput as error:
            note_place(error, [*(one.item for one in path), item], self.roots)
            raise
        self._jobs[id(item)] = job
        if not (children := children_of(item)):
            return False
        self._families[id(item)] = item, children
        path.append(Below(item, queue, (Parent(job.queue, job.id),), iter(children)))
        return True

    def _job_of(self, item: FlowRequest, parents_queue: Queue, parents: Parents) -> tuple[Queue, NewJob]:
        """The job of a node, without children, and its queue."""
        if isinstance(item, Call):
            call = checked_call(item)
            queue = parents_queue if call.queue is None else self._same_store(call.queue)
            inputs = call.inputs
        elif isinstance(item, Flow):
            queue = parents_queue if item.queue is None else self._queue_of(item.queue, parents_queue)
            if not item.options and type(item.name) is str and item.name in self._plain.get(queue, ()):
                return queue, plain_job(queue.name, item.name, item.data, queue.size_limit, parents)
            call = Call(item.name, item.data, item.options)
            inputs = queue.tasks.inputs(item.name, item.data)
        else:
            raise InvalidInput(f"a flow is made of Flow(...) or task.call(...), and not of {shown(item)}")
        job = job_of(queue, call, is_alone=False, parents=parents)
        key = job.queue, job.id
        if not job.is_fresh and key in self._own_ids:
            raise InvalidInput(f"two jobs of the flow have the id {job.id!r} in {job.queue!r}: give each its own")
        if not job.is_fresh:
            self._own_ids.add(key)
        if has_no_defaults(queue, job.name):
            self._plain.setdefault(queue, set()).add(job.name)
        if inputs:
            self._inputs[id(item)] = inputs
        if call.read_result is not None:
            self._readers[key] = call.read_result
        if queue.webhook_settings.is_pending:
            self._undeclared[queue] = None
        self._queues.setdefault(queue.name, queue)
        return queue, job

    def _queue_of(self, given: Queue | str, parents: Queue) -> Queue:
        if not isinstance(given, str):
            return self._same_store(given)
        if given == parents.name:
            return parents
        if given not in self._named:
            self._named[given] = type(self._queue)(given, store=self._queue.store)
        return self._named[given]

    def _same_store(self, queue: Queue) -> Queue:
        if not isinstance(queue, type(self._queue)):
            raise InvalidOption("queue", f"cannot be {shown(queue)}: give its name, or a Queue")
        if not queue.shares_store_with(self._queue):
            raise InvalidInput(
                f"{queue!r} is in another store than {self._queue!r}: a flow is in one store. "
                "Give both queues store=connect(url)"
            )
        return queue

    def _sorted(self) -> list[int]:
        """Parents before children, however often a node was found."""
        below = {key: [*map(id, children)] for key, (_, children) in self._families.items()}
        unplaced = Counter(child for children in below.values() for child in children)
        going = [key for key in dict.fromkeys(map(id, self.roots)) if key not in unplaced][::-1]
        order: list[int] = []
        while going:
            order.append(key := going.pop())
            for child in reversed(below.get(key, ())):
                unplaced[child] -= 1
                if not unplaced[child]:
                    going.append(child)
        return order

    def _complete(self, key: int) -> NewJob:
        """A job with all its parents, its children, and what it takes from them."""
        job = self._jobs[key]
        item, children = self._families.get(key, (None, ()))
        below = [self._jobs[id(child)] for child in children]
        links = () if item is None else _links_to(below, policies_in(item, children))
        parents = tuple(dict.fromkeys(self._parents[key])) if key in self._parents else job.parents
        if inputs := self._inputs.get(key):
            options = replace(stored_options(job.options), takes=taken_from(job.name, inputs, below))
            job = replace(job, options=_encode(options).decode())
        return replace(job, parents=parents, children=links)


def _links_to(jobs: Iterable[NewJob], policies: Iterable[Policy]) -> tuple[Child, ...]:
    return tuple([Child(job.queue, job.id, policy) for job, policy in zip(jobs, policies, strict=True)])
