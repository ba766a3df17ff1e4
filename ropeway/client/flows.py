"""`Flow`, a job that waits for other jobs, and the handle on one that was added."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias, Unpack

from ..errors import InvalidOption
from ..job.codec import Json
from ..job.flows import DEFAULT_POLICY, Policy, policy_or_none
from ..job.options import JobOptions
from ..showing import shown
from .handle import JobHandle
from .new_jobs import Call
from .results import R_co
from .sync_flows import SyncFlowHandle

if TYPE_CHECKING:
    from .queue import Queue

FlowRequest: TypeAlias = "Flow | Call[Any]"
"""A node of a flow."""
_USUAL: Final = (tuple, list)
"""Types of children that need no further check, which would cost more than all else of a node without children."""


class Flow:
    """A job that waits for its children: `Flow("report", data, children=[Flow("fetch", data, queue="etl")])`.

    It takes every option of `add`. Without `queue`, a name or a `Queue`, it is in its parent's. One object under two
    parents is one job with two parents. `on_child_failure` says what becomes of this job if a child fails: "fail",
    "ignore", "remove", "continue" or "wait". A child can differ from its siblings: by `on_failure`, or, if it has no
    children itself, by `on_child_failure`.
    """

    __slots__ = ("children", "data", "name", "on_child_failure", "on_failure", "options", "queue")

    def __init__(
        self,
        name: str,
        data: Json = None,
        *,
        queue: Queue | str | None = None,
        children: Iterable[FlowRequest] = (),
        on_child_failure: Policy | None = None,
        on_failure: Policy | None = None,
        **options: Unpack[JobOptions],
    ) -> None:
        if type(children) not in _USUAL and (
            isinstance(children, str | Mapping | Flow | Call) or not isinstance(children, Iterable)
        ):
            raise InvalidOption("children", f"cannot be {shown(children)}: give a list of Flow(...)")
        self.name = name
        self.data = data
        self.queue = queue
        self.children: list[FlowRequest] = list(children)
        self.on_child_failure: Policy | None = None
        if on_child_failure is not None:
            self.on_child_failure = policy_or_none("on_child_failure", on_child_failure)
        self.on_failure: Policy | None = None if on_failure is None else policy_or_none("on_failure", on_failure)
        self.options = options

    def __repr__(self) -> str:
        return f"<Flow {self.name!r} with {len(self.children)} children>"


def children_of(item: FlowRequest) -> list[FlowRequest]:
    """The nodes that one waits for, each once."""
    children: list[FlowRequest] = [one for one, _ in item.earlier] if isinstance(item, Call) else item.children
    if len(children) < 2 or len(set(map(id, children))) == len(children):
        return children
    return [*{id(child): child for child in children}.values()]


def policies_in(item: FlowRequest, children: Iterable[FlowRequest]) -> list[Policy]:
    """The failure policy for each of the node's children, in the order of `children_of`."""
    if isinstance(item, Call):
        policies: dict[int, Policy] = {id(one): policy or DEFAULT_POLICY for one, policy in item.earlier}
        return [*policies.values()]
    return policies_of(children, item.on_child_failure)


def policies_of(items: Iterable[FlowRequest], parents: Policy | None) -> list[Policy]:
    """The own policy of each node, or that of its parent."""
    policy: Policy = parents or DEFAULT_POLICY
    return [
        # Without children of its own, `on_child_failure` can only be about the node itself.
        (item.on_failure or (not item.children and item.on_child_failure) or policy)
        if isinstance(item, Flow)
        else policy
        for item in items
    ]


class FlowHandle(JobHandle[R_co]):
    """The parent of a flow, as `add_flow` returns it; `children` mirrors the flow."""

    __slots__ = ("_children",)

    def __init__(
        self,
        queue: Queue,
        id: str,
        name: str,
        data: Json,
        make_children: Callable[[], tuple[FlowHandle[Any], ...]] | None,
        *,
        created: bool = False,
        deduplicated: bool = False,
        read_result: Callable[[Json], R_co] | None = None,
    ) -> None:
        super().__init__(queue, id, name, data, created=created, deduplicated=deduplicated, read_result=read_result)
        self._children: Callable[[], tuple[FlowHandle[Any], ...]] | tuple[FlowHandle[Any], ...] = make_children or ()

    @property
    def children(self) -> tuple[FlowHandle[Any], ...]:
        """Handles on the jobs that it waits for, in their order."""
        if not isinstance(self._children, tuple):
            self._children = self._children()
        return self._children

    @property
    def sync(self) -> SyncFlowHandle[R_co]:
        """The same job for code without an event loop: `job.sync.result()` blocks until it is answered."""
        return SyncFlowHandle(self)
