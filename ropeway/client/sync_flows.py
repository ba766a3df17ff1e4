"""The sync twin of `FlowHandle`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .results import R_co
from .sync_handle import SyncJobHandle

if TYPE_CHECKING:
    from .flows import FlowHandle


class SyncFlowHandle(SyncJobHandle[R_co]):
    """The twin of `FlowHandle`: the parent of a flow; `children` mirrors the flow."""

    __slots__ = ("_flow",)

    def __init__(self, job: FlowHandle[R_co]) -> None:
        super().__init__(job)
        self._flow = job

    @property
    def children(self) -> tuple[SyncFlowHandle[Any], ...]:
        return tuple(child.sync for child in self._flow.children)
