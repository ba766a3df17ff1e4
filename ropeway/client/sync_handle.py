"""A job as its producer holds it, in code without an event loop."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Generic

import msgspec

from ..job.codec import Json
from ..job.durations import Duration
from ..job.states import State
from ..store.values import History, LogPage
from .elsewhere import ON_SYNC_JOBS, Guided
from .portal import run
from .results import R_co
from .snapshot import Snapshot

if TYPE_CHECKING:
    from .handle import JobHandle
    from .sync_queue import SyncQueue


class SyncJobHandle(Guided, Generic[R_co]):
    """The twin of `JobHandle`: the same calls, and each waits for its answer."""

    __slots__ = ("_job",)

    _elsewhere = ON_SYNC_JOBS
    _twin = "job.{}(...)"

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

    # Written by tools/twins.py: do not edit

    def refresh(self) -> Snapshot:
        """Reads the job anew."""
        return run(self._job.refresh())

    def state(self) -> State:
        """The state now, read from the store."""
        return run(self._job.state())

    def result(self, timeout: Duration | None = None) -> R_co:
        """What the handler returned, as soon as the job is completed; of a task, in the type that it says.

        Raises `JobFailed`, `JobCancelled` or `JobRemoved` when there will never be a result, and `ResultTimeout`
        after `timeout`; the job itself goes on then.
        """
        return run(self._job.result(timeout))

    def history(self) -> History:
        """The job's failed attempts and log lines."""
        return run(self._job.history())

    def logs(self, *, after: int | None = None, limit: int = 100, newest_first: bool = False) -> LogPage:
        """A page of the job's log lines; `after` is the `next` of the page before, or its `newest` for later lines."""
        return run(self._job.logs(after=after, limit=limit, newest_first=newest_first))

    def clear_logs(self, *, keep: int = 0) -> None:
        """Forgets the job's log lines but the newest `keep`, whatever its state."""
        run(self._job.clear_logs(keep=keep))

    def cancel(self, reason: str | None = None) -> bool:
        """Ends the job if it is not finished; False if it was cancelled before."""
        return run(self._job.cancel(reason))

    def retry(self, *, reset: bool = False) -> None:
        """Lets the finished job run once more; `reset` gives it all its attempts again."""
        run(self._job.retry(reset=reset))

    def promote(self) -> None:
        """Ends the job's delay."""
        run(self._job.promote())

    def remove(self, *, force: bool = False) -> None:
        """Forgets the job; one that is active only with `force`."""
        run(self._job.remove(force=force))

    def change(
        self,
        *,
        priority: int | None = None,
        lifo: bool | None = None,
        delay: Duration | datetime | None = None,
        data: Json = msgspec.UNSET,
    ) -> None:
        """Changes the job if it is not finished: all of what is given, or nothing.

        Priority and lifo while it waits or is delayed, delay (counted from now) while it is delayed.
        """
        run(self._job.change(priority=priority, lifo=lifo, delay=delay, data=data))

    # End of what tools/twins.py writes

    # Written by tools/twins.py: do not edit

    # End of what tools/twins.py writes
