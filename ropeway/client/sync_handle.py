"""A job as its producer holds it, in code without an event loop."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Generic

import msgspec

from ..job.codec import Json
from ..job.durations import Duration
from ..job.states import State
from .portal import run
from .results import R_co
from .snapshot import Snapshot

if TYPE_CHECKING:
    from .handle import JobHandle
    from .sync_queue import SyncQueue


class SyncJobHandle(Generic[R_co]):
    """The twin of `JobHandle`: the same calls, and each waits for its answer."""

    __slots__ = ("_job",)

    def __init__(self, job: JobHandle[R_co]) -> None:
        self._job = job

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r} {self.id} in {self._job.queue.name!r}>"

    @property
    def queue(self) -> SyncQueue:
        return self._job.queue.sync

    @property
    def id(self) -> str:
        return self._job.id

    @property
    def name(self) -> str:
        return self._job.name

    @property
    def data(self) -> Json:
        """As it is stored: of a task, an object of its arguments."""
        return self._job.data

    @property
    def created(self) -> bool:
        """Whether the add that answered this stored a new job, or found it there."""
        return self._job.created

    @property
    def snapshot(self) -> Snapshot | None:
        """The job as it stood when it was last read; None after an add until `refresh`."""
        return self._job.snapshot

    def refresh(self) -> Snapshot:
        """Reads the job anew."""
        return run(self._job.refresh())

    def state(self) -> State:
        return run(self._job.state())

    def result(self, timeout: Duration | None = None) -> R_co:
        """What the handler returned, as soon as the job is completed; of a task, in the type that it says.

        Raises `JobFailed`, `JobCancelled` or `JobRemoved` when there will never be a result, and `ResultTimeout`
        after `timeout`; the job itself goes on then.
        """
        return run(self._job.result(timeout))

    def cancel(self, reason: str | None = None) -> bool:
        return run(self._job.cancel(reason))

    def retry(self, *, reset: bool = False) -> None:
        run(self._job.retry(reset=reset))

    def promote(self) -> None:
        run(self._job.promote())

    def remove(self, *, force: bool = False) -> None:
        run(self._job.remove(force=force))


class SyncJobPage(msgspec.Struct, frozen=True):
    """Some jobs of a queue; `next` is the `after` of the following page, None on the last."""

    jobs: list[SyncJobHandle]
    next: str | None = None

    def __iter__(self) -> Iterator[SyncJobHandle]:
        return iter(self.jobs)

    def __len__(self) -> int:
        return len(self.jobs)
