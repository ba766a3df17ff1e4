"""`SyncJobHandle`: the twin of `JobHandle` for code without an event loop."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Generic

import msgspec

from ..job.codec import Json
from ..job.durations import Duration
from ..job.flows import ChildState
from ..job.states import State
from ..store.values import History, LogPage
from .name_hints import ON_SYNC_JOBS, Guided
from .portal import run
from .results import R_co
from .snapshot import Snapshot

if TYPE_CHECKING:
    from .handle import JobHandle
    from .sync_queue import SyncQueue


class SyncJobHandle(Guided, Generic[R_co]):
    """The twin of `JobHandle`: the same calls, each blocking until it is answered."""

    __slots__ = ("_job",)

    _foreign_names = ON_SYNC_JOBS
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
        """The job's data as stored: for a task, an object of its arguments."""
        return self._job.data

    @property
    def created(self) -> bool:
        """True if the add stored a new job, False if it found an existing one."""
        return self._job.created

    @property
    def deduplicated(self) -> bool:
        """True if the add found this job because it holds the same dedupe key."""
        return self._job.deduplicated

    @property
    def snapshot(self) -> Snapshot | None:
        """The job as of its last read; None after an add until `refresh`."""
        return self._job.snapshot

    # Written by tools/twins.py: do not edit

    def refresh(self) -> Snapshot:
        """Reads the job again."""
        return run(self._job.refresh())

    def state(self) -> State:
        """The current state, read from the store."""
        return run(self._job.state())

    def result(self, timeout: Duration | None = None) -> R_co:
        """Waits until the job is completed, and returns its result; for a task, in its return type.

        Raises `JobFailed`, `JobCancelled` or `JobRemoved` when there will never be a result, and `ResultTimeout`
        after `timeout`; the job itself goes on then.
        """
        return run(self._job.result(timeout))

    def history(self) -> History:
        """The job's failed attempts and log lines."""
        return run(self._job.history())

    def logs(self, *, after: int | None = None, limit: int = 100, newest_first: bool = False) -> LogPage:
        """A page of the job's log lines; `after` is the previous page's `next`, or its `newest` for later lines."""
        return run(self._job.logs(after=after, limit=limit, newest_first=newest_first))

    def clear_logs(self, *, keep: int = 0) -> None:
        """Drops all but the newest `keep` log lines of the job, in any state."""
        run(self._job.clear_logs(keep=keep))

    def children_results(self) -> dict[str, Json]:
        """The results of its completed children, by their ids."""
        return run(self._job.children_results())

    def children_failures(self) -> dict[str, str]:
        """The reasons of its failed and cancelled children, by their ids."""
        return run(self._job.children_failures())

    def children_counts(self) -> dict[ChildState, int]:
        """How many of its children are pending, completed, failed and cancelled."""
        return run(self._job.children_counts())

    def cancel(self, reason: str | None = None, *, children: bool = False) -> bool:
        """Cancels the job if it is not finished; False if it was cancelled before.

        With `children`, those below it that are not finished are cancelled too.
        """
        return run(self._job.cancel(reason, children=children))

    def retry(self, *, reset: bool = False, from_phase: str | None = None) -> None:
        """Makes the finished job run once more; `reset` restores all its attempts.

        Results of steps and completed phases stay; `from_phase` begins again at that phase of a pipeline. A completed
        pipeline runs its last phase again.
        """
        run(self._job.retry(reset=reset, from_phase=from_phase))

    def promote(self) -> None:
        """Makes the delayed job wait now."""
        run(self._job.promote())

    def signal(self, name: str, data: Json = None) -> None:
        """Answers a `job.wait_for(name)` of the job, also one that comes later; a second signal replaces the first."""
        run(self._job.signal(name, data))

    def remove(self, *, force: bool = False, children: bool = True) -> None:
        """Removes the job, and those below it in its flow unless `children` is False; active ones only with `force`.

        Looks first: if one of them is active, nothing is removed. One that a worker takes in that moment stays, and
        `InvalidMove` says so.
        """
        run(self._job.remove(force=force, children=children))

    def change(
        self,
        *,
        priority: int | None = None,
        lifo: bool | None = None,
        delay: Duration | datetime | None = None,
        data: Json = msgspec.UNSET,
    ) -> None:
        """Changes the job if it is not finished: all given fields, or nothing.

        Priority and lifo while it waits or is delayed, delay (counted from now) while it is delayed.
        """
        run(self._job.change(priority=priority, lifo=lifo, delay=delay, data=data))

    # End of what tools/twins.py writes

    # Written by tools/twins.py: do not edit

    # End of what tools/twins.py writes
