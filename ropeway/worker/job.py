"""`Job`: the job as `async def` handlers receive it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, NoReturn, TypeAlias, TypeVar

import msgspec

from ..client.flow_plan import Plan
from ..client.flows import FlowHandle, FlowRequest
from ..client.handle import JobHandle
from ..client.new_jobs import PROGRESS_LIMIT
from ..client.payload_versions import version_mark
from ..client.queue import Queue
from ..client.running import RunIn, RunningJob
from ..errors import DuplicateJob, HandlerError, Postponed
from ..job.codec import Json, encode
from ..job.durations import Duration, milliseconds
from ..job.flows import Parent, Policy, policy_or_none
from ..job.marks import Marking
from ..job.options import StoredOptions
from ..job.record import JobRecord
from ..job.retention import KEEP_COMPLETED
from ..store.values import Added, JobUpdate
from .completing import Completion, complete_with, completing
from .durable import Durable, noted
from .job_run import JobRun, made_once

if TYPE_CHECKING:
    from .slots import Slot
    from .timing import Timing
    from .typed import Dump

T = TypeVar("T")

LOG_LINE_LIMIT: Final = 4_096

Interruption: TypeAlias = Literal["cancelled", "removed", "lost", "timeout", "shutdown"]
REVOKED: Final[tuple[Interruption, ...]] = ("cancelled", "removed")
"""The job is no longer this worker's, and nothing is left to settle."""

Interrupt: TypeAlias = "Callable[[Job, Interruption], None]"
"""Interrupts a running job, from any thread."""


class Job(Durable, JobHandle[Any], RunningJob):
    """The job as an `async def` handler receives it. Its calls are refused once the handler has ended."""

    run_in: ClassVar[RunIn] = "loop"

    __slots__ = (
        "_decoded",
        "_run",
        "cancel_sent",
        "completion",
        "confirmed",
        "discarded",
        "dump",
        "ended",
        "error",
        "interruption",
        "keep",
        "marking",
        "options",
        "progressed",
        "record",
        "slot",
        "threaded",
        "timing",
        "token",
        "upgraded_to",
    )

    upgraded_to: int
    """The version of the data that its handler was given; set only if that is not the stored one."""

    def __init__(self, queue: Queue, record: JobRecord, confirmed: float) -> None:
        self.queue = queue
        self.id = record.id
        self.name = record.name
        self.created = self.deduplicated = False
        self._snapshot = None
        self._read_result = None
        self.record = record
        self.token: str = record.token or ""
        self.options: StoredOptions | None = None
        self.keep = KEEP_COMPLETED
        """Retention, once it is completed."""
        self.confirmed = confirmed
        """When the store last confirmed the lock, on the worker's monotonic clock."""
        self.interruption: Interruption | None = None
        self.cancel_sent = False
        """True if its handler's task was cancelled because of it."""
        self.ended = False
        self.error: BaseException | None = None
        """The error of its attempt, until it is reported."""
        self.discarded = False
        self.slot: Slot | None = None
        self._run: JobRun | None = None
        self.marking: Marking | None = None
        """Marks to be stored with its completion, or when it is postponed."""
        self.threaded = False
        """True while its handler is in a thread, where it cannot be cancelled."""
        self.progressed: Callable[[Job, Json], None] | None = None
        """Called with each progress value, once it is stored."""
        self.timing: Timing | None = None
        """Only set if its log line is wanted."""
        self._decoded = False
        self.completion: Completion | None = None
        self.dump: Dump | None = None
        """Converts results of its task's type to JSON."""

    @property
    def data(self) -> Json:
        if not self._decoded:
            try:
                self._data = self.record.read_data()
            except msgspec.MsgspecError as damage:
                # Another attempt would fail in the same way.
                self.discarded = True
                raise HandlerError(f"corrupt record: its data cannot be read: {damage}") from None
            self._decoded = True
        return self._data

    @property
    def run(self) -> JobRun:
        """For the parts of a worker that act for the handler."""
        run = self._run
        if run is None:
            with made_once:
                run = self._run = self._run or JobRun(self)
        return run

    @property
    def has_running_steps(self) -> bool:
        return self._run is not None and self._run.has_running_steps

    def end(self) -> None:
        """Ends the attempt: updates are refused from now on."""
        self.ended = True
        # They refer to the job: without this, both would wait for the garbage collector.
        self.slot = self._run = None

    def refuse_end(self) -> None:
        """Raises if the handler must not return yet, because it passed over a sleep or a step."""
        if self._run is not None:
            self._run.refuse_end()

    @property
    def attempt(self) -> int:
        """1 for the first attempt; postponements and stalls do not count."""
        return self.record.attempts_made + 1

    @property
    def cancelled(self) -> bool:
        """True if the handler should stop.

        The job was cancelled or removed, its lock was lost, its timeout passed, or the worker shuts down.
        """
        return self.interruption is not None

    async def progress(self, value: Json) -> None:
        """Stores the job's progress: any JSON value; a number from 0 to 100 is shown as a bar."""
        await self.run.update(JobUpdate(self.id, self.token, progress=encode(value, "progress", PROGRESS_LIMIT)))
        if self.progressed is not None:
            self.progressed(self, value)

    async def log(self, text: object) -> None:
        """Adds a line to the job's log, which keeps the newest 1,000 unless `keep_logs` says otherwise."""
        line = str(text).encode("utf-8", "backslashreplace").decode().replace("\x00", "\\x00")[:LOG_LINE_LIMIT]
        keep = self.options.keep_logs if self.options else 0
        await self.run.update(JobUpdate(self.id, self.token, log=(line,), keep_logs=keep))

    async def update_data(self, data: Json) -> None:
        """Replaces the job's data, for this attempt and the next ones."""
        text = encode(data, "data", self.queue.size_limit)
        # What a handler writes is of the version that it was given.
        version = getattr(self, "upgraded_to", None)
        marking = None if version is None else Marking((version_mark(version),))
        await self.run.update(JobUpdate(self.id, self.token, data=text, marking=marking))
        self._data, self._decoded = data, True

    def postpone(self, delay: Duration = 0) -> NoReturn:
        """Leaves the handler by an exception; the job runs again after the delay, and no attempt is used."""
        raise Postponed(milliseconds(delay, "delay"))

    async def add_children(
        self, flows: Iterable[FlowRequest], *, on_child_failure: Policy | None = None
    ) -> list[FlowHandle]:
        """Adds jobs that this one can wait for: all of them, or none if one of their ids exists.

        A handler that waits begins again afterwards: give the children ids of their own, or add them only if
        `children_counts` shows none.
        """
        plan = Plan(self.queue, flows)
        links = plan.links(policy_or_none("on_child_failure", on_child_failure))
        plan.adopt(Parent(self.queue.name, self.id))
        bundle = plan.bundle
        if not bundle:
            return []
        change = JobUpdate(self.id, self.token, children=links, adds=tuple(bundle))
        if (await self.run.update(change)).verdict == "refused":
            raise DuplicateJob(links[0].queue, ", ".join(child.id for child in links[:10]), is_child=True)
        return plan.handles(bundle, [Added(job.id, "created") for job in bundle])

    @noted
    async def wait_for_children(self) -> None:
        """Returns if all children have ended; otherwise gives the slot back, and the handler begins again then.

        That uses no attempt. It leaves the handler by an exception. If a child has failed, the job fails, goes on or
        waits as `on_child_failure` says.
        """
        if (await self.run.read("children", lambda: self.queue.children(self.id, limit=1))).awaited:
            await self._wait_for_other_steps()
            await self._give_back(Postponed(0, awaits_children=True))

    def discard(self) -> None:
        """If this attempt fails, there will be no other."""
        self.discarded = True

    def transaction(self, using: object = None) -> AbstractAsyncContextManager[Any]:
        """Commits the writes of the block and the job's completion together at its end, or neither.

        `using` is your own connection or session; without it the store opens one, as by `queue.transaction()`. If the
        job is no longer this worker's, all is rolled back and `LockLost` is raised. The handler's return value is
        ignored: the result is what `complete_with` was given.
        """
        return completing(self, using)

    def complete_with(self, result: Json) -> None:
        """The job's result, if the block of `transaction` ends well; None if this is not called."""
        complete_with(self, result)
