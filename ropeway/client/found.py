"""Jobs and pages of jobs, as `get` and `find` return them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

import msgspec

from ..job.codec import Json
from ..job.record import JobRecord
from .handle import JobHandle
from .results import R_co
from .snapshot import Snapshot, snapshot_of
from .sync_found import SyncFoundJob, SyncJobPage

if TYPE_CHECKING:
    from .queue import Queue

T = TypeVar("T")


class FoundJob(JobHandle[R_co]):
    """A handle that always has a snapshot, as `get` and `find` return it."""

    __slots__ = ()

    @property
    def snapshot(self) -> Snapshot:
        """The job as of the read, or of the last `refresh`."""
        assert self._snapshot is not None, "it was made of one"
        return self._snapshot

    def typed(self, read_result: Callable[[Json], T]) -> FoundJob[T]:
        return FoundJob(self.queue, self.id, self.name, self._data, snapshot=self._snapshot, read_result=read_result)

    @property
    def sync(self) -> SyncFoundJob[R_co]:
        """The same job for code without an event loop: `job.sync.result()` blocks until it is answered."""
        return SyncFoundJob(self)


class JobPage(msgspec.Struct, frozen=True):
    """A page of jobs; `next` is the `after` of the following page, None on the last."""

    jobs: list[FoundJob]
    next: str | None = None

    def __iter__(self) -> Iterator[FoundJob]:
        return iter(self.jobs)

    def __len__(self) -> int:
        return len(self.jobs)

    def __getitem__(self, index: int) -> FoundJob:
        return self.jobs[index]

    @property
    def sync(self) -> SyncJobPage:
        """The same jobs for code without an event loop."""
        return SyncJobPage([job.sync for job in self.jobs], self.next)


def found_job(queue: Queue, record: JobRecord) -> FoundJob:
    snapshot = snapshot_of(record)
    return FoundJob(queue, record.id, record.name, snapshot.data, snapshot=snapshot)
