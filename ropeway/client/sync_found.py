"""The sync twins of `FoundJob` and `JobPage`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from .results import R_co
from .snapshot import Snapshot
from .sync_handle import SyncJobHandle

if TYPE_CHECKING:
    from .found import FoundJob


class SyncFoundJob(SyncJobHandle[R_co]):
    """The twin of `FoundJob`: a handle that always has a snapshot."""

    __slots__ = ("_found",)

    def __init__(self, job: FoundJob[R_co]) -> None:
        super().__init__(job)
        self._found = job

    @property
    def snapshot(self) -> Snapshot:
        """The job as of the read, or of the last `refresh`."""
        return self._found.snapshot


class SyncJobPage(msgspec.Struct, frozen=True):
    """A page of jobs; `next` is the `after` of the following page, None on the last."""

    jobs: list[SyncFoundJob]
    next: str | None = None

    def __iter__(self) -> Iterator[SyncFoundJob]:
        return iter(self.jobs)

    def __len__(self) -> int:
        return len(self.jobs)

    def __getitem__(self, index: int) -> SyncFoundJob:
        return self.jobs[index]
