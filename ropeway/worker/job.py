"""The job objects that handlers receive: `Job` for coroutines, `SyncJob` for functions in threads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, NoReturn, TypeAlias, TypeVar, cast

import msgspec

from ..client.flow_plan import Plan
from ..client.flows import FlowHandle, FlowRequest
from ..client.handle import JobHandle
from ..client.new_jobs import PROGRESS_LIMIT
from ..client.payload_versions import version_mark
from ..client.queue import Queue
from ..client.running import RunIn, RunningJob
from ..client.sync_flows import SyncFlowHandle
from ..client.updates import Posted
from ..errors import DuplicateJob, HandlerError, JobFinished, LockLost, Postponed, StoreUnavailable
from ..job.codec import Json, encode
from ..job.durations import Duration, milliseconds
from ..job.flows import ChildState, Parent, Policy, policy_or_none
from ..job.marks import Mark, Marking
from ..job.options import StoredOptions
from ..job.record import JobRecord
from ..job.retention import KEEP_COMPLETED
from ..store.values import Added, Answer, JobUpdate
from .blocking_steps import StepsInPlace
from .completing import Completion, complete_with, completing, completing_blocking
from .durable import Durable
from .service import until_answered
from .step_marks import StepMarks

if TYPE_CHECKING:
    from .slots import Slot
    from .timing import Timing
    from .typed import Dump

T = TypeVar("T")

LOG_LINE_LIMIT: Final = 4_096

Signal: TypeAlias = Literal["cancelled", "removed", "lost", "timeout", "shutdown"]
REVOKED: Final[tuple[Signal, ...]] = ("cancelled", "removed")
"""The job is no longer this worker's, and nothing is left to settle."""

SendSignal: TypeAlias = "Callable[[Job, Signal], None]"
"""Delivers a signal to a running job, from any thread."""


class Job(Durable, JobHandle[Any], RunningJob):
    """The job as an `async def` handler receives it. Its calls are refused once the handler has ended."""

    run_in: ClassVar[RunIn] = "loop"

    __slots__ = (
        "_decoded",
        "cancel_sent",
        "completion",
        "confirmed",
        "discarded",
        "dump",
        "ended",
        "error",
        "keep",
        "marking",
        "options",
        "phase",
        "posted",
        "progressed",
        "record",
        "signal",
        "slot",
        "step_marks",
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
        self.signal: Signal | None = None
        self.cancel_sent = False
        """True if its handler's task was cancelled because of the signal."""
        self.ended = False
        self.error: BaseException | None = None
        """The error of its attempt, until it is reported."""
        self.discarded = False
        self.slot: Slot | None = None
        self.step_marks: StepMarks | None = None
        self.marking: Marking | None = None
        """Marks to be stored with its completion, or when it is postponed."""
        self.phase: str | None = None
        """The phase of its pipeline that runs now."""
        self.posted: Posted | None = None
        """An update that was sent without waiting; set until the store has confirmed it, or a later one."""
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
    def _known_marks(self) -> StepMarks:
        if self.step_marks is None:
            self.step_marks = StepMarks(self.record)
        return self.step_marks

    @property
    def attempt(self) -> int:
        """1 for the first attempt; postponements and stalls do not count."""
        return self.record.attempts_made + 1

    @property
    def cancelled(self) -> bool:
        """True if the handler should stop.

        The job was cancelled or removed, its lock was lost, its timeout passed, or the worker shuts down.
        """
        return self.signal is not None

    async def progress(self, value: Json) -> None:
        """Stores the job's progress: any JSON value; a number from 0 to 100 is shown as a bar."""
        await self._update(JobUpdate(self.id, self.token, progress=encode(value, "progress", PROGRESS_LIMIT)))
        if self.progressed is not None:
            self.progressed(self, value)

    async def log(self, text: object) -> None:
        """Adds a line to the job's log, which keeps the newest 1,000 unless `keep_logs` says otherwise."""
        line = str(text).encode("utf-8", "backslashreplace").decode().replace("\x00", "\\x00")[:LOG_LINE_LIMIT]
        keep = self.options.keep_logs if self.options else 0
        await self._update(JobUpdate(self.id, self.token, log=(line,), keep_logs=keep))

    async def update_data(self, data: Json) -> None:
        """Replaces the job's data, for this attempt and the next ones."""
        text = encode(data, "data", self.queue.size_limit)
        # What a handler writes is of the version that it was given.
        version = getattr(self, "upgraded_to", None)
        marking = None if version is None else Marking((version_mark(version),))
        await self._update(JobUpdate(self.id, self.token, data=text, marking=marking))
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
        if (await self._update(change)).verdict == "refused":
            raise DuplicateJob(links[0].queue, ", ".join(child.id for child in links[:10]), is_child=True)
        return plan.handles(bundle, [Added(job.id, "created") for job in bundle])

    async def wait_for_children(self) -> None:
        """Returns if all children have ended; otherwise gives the slot back, and the handler begins again then.

        That uses no attempt. It leaves the handler by an exception. If a child has failed, the job fails, goes on or
        waits as `on_child_failure` says.
        """
        if (await self.queue.children(self.id, limit=1)).awaited:
            await self._give_back(Postponed(0, awaits_children=True))

    def discard(self) -> None:
        """If this attempt fails, there will be no other."""
        self.discarded = True

    def _mark_when_given_back(self, mark: Mark) -> None:
        """Tells readers what it waits for, without a write of its own."""
        self.marking = Marking((mark,))

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

    async def _update(self, change: JobUpdate) -> Answer:
        if self.ended:
            raise JobFinished(self.queue.name, self.id)
        posted = self.posted
        if posted is not None and not posted.is_withdrawn:
            if change.children or (change.progress is not None and not _has_notices(change)):
                # If children are refused, nothing else of their update is stored; progress is announced before notices.
                await self._store_posted()
            else:
                change = await self._after_posted(posted, change) or change
        answer = await self._store_update(change)
        if answer.verdict in ("lost", "missing"):
            raise LockLost(self.queue.name, self.id)
        if posted is not None:
            self.posted = None
        return answer

    async def _store_update(self, change: JobUpdate) -> Answer:
        updates = self.queue.updates
        try:
            return await updates.send(change)
        except StoreUnavailable:
            if self.cancelled:
                raise
        # A short outage of the store must not fail a handler; in a long one its lock is lost.
        return await until_answered(lambda _: updates.send(change), "update", unless=lambda: self.cancelled)

    async def _store_posted(self) -> None:
        """Returns when what was posted is stored."""
        posted = self.posted
        if posted is None:
            return
        change = await self._after_posted(posted, None)
        if change is None:
            self.posted = None
        else:
            await self._update(change)

    async def _after_posted(self, posted: Posted, change: JobUpdate | None) -> JobUpdate | None:
        """The change together with what was posted, if that is not stored; what was posted has left otherwise."""
        if not posted.withdraw():
            if posted.is_withdrawn:
                # Another update that has left takes it along.
                return change
            try:
                answer = await posted.answer()
            except StoreUnavailable:
                if self.cancelled:
                    raise
                return await self._after_posted(posted, change)
            if answer.verdict != "done":
                raise LockLost(self.queue.name, self.id)
            return change
        return posted.change if change is None else change.after(posted.change)


def _has_notices(change: JobUpdate) -> bool:
    return change.marking is not None and bool(change.marking.notices)


class SyncJob(StepsInPlace, RunningJob):
    """The job as a `def` handler receives it; its calls block until they are answered."""

    run_in: ClassVar[RunIn] = "thread"

    def __init__(self, job: Job, loop: asyncio.AbstractEventLoop) -> None:
        self._job = job
        self._loop = loop
        self._loop_thread = threading.get_ident()
        self.id = job.id
        self.name = job.name
        self.queue = job.queue
        self.record = job.record
        self.token = job.token
        self.attempt = job.attempt

    def __repr__(self) -> str:
        return f"<SyncJob {self.name!r} {self.id} in {self.queue.name!r}>"

    @property
    def data(self) -> Json:
        return self._job.data

    @property
    def upgraded_to(self) -> int:
        return self._job.upgraded_to

    @upgraded_to.setter
    def upgraded_to(self, version: int) -> None:
        self._job.upgraded_to = version

    @property
    def cancelled(self) -> bool:
        """True if the handler should stop. Nothing can stop a thread from outside, so check it now and then."""
        return self._job.cancelled

    def progress(self, value: Json) -> None:
        return self._wait(lambda: self._job.progress(value))

    def log(self, text: object) -> None:
        return self._wait(lambda: self._job.log(text))

    def update_data(self, data: Json) -> None:
        return self._wait(lambda: self._job.update_data(data))

    def children_results(self) -> dict[str, Json]:
        """The results of its completed children, by their ids."""
        return self._wait(self._job.children_results)

    def children_failures(self) -> dict[str, str]:
        """The reasons of its failed and cancelled children, by their ids."""
        return self._wait(self._job.children_failures)

    def children_counts(self) -> dict[ChildState, int]:
        """How many of its children are pending, completed, failed and cancelled."""
        return self._wait(self._job.children_counts)

    def add_children(
        self, flows: Iterable[FlowRequest], *, on_child_failure: Policy | None = None
    ) -> list[SyncFlowHandle]:
        """Adds jobs that this one can wait for: all of them, or none if one of their ids exists."""
        added = self._wait(lambda: self._job.add_children(flows, on_child_failure=on_child_failure))
        return [child.sync for child in added]

    def wait_for_children(self) -> None:
        """Returns if all children have ended; otherwise leaves the handler, which begins again then."""
        return self._wait(self._job.wait_for_children)

    @property
    def _steps(self) -> StepMarks:
        return self._job._known_marks  # noqa: SLF001 - a part of the job

    @property
    def _result_limit(self) -> int:
        return self.queue.size_limit

    def _write_step(self, mark: Mark) -> None:
        self._wait(lambda: self._job._write_marks(mark))  # noqa: SLF001 - a part of the job

    def sleep(self, duration: Duration, *, name: str | None = None) -> None:
        """Gives the slot back for a time; the handler begins again afterwards."""
        return self._wait(lambda: self._job.sleep(duration, name=name))

    def wait_for(self, name: str, *, timeout: Duration | None = None) -> Json:
        """Waits for a signal, and answers its data; gives the slot back meanwhile."""
        return self._wait(lambda: self._job.wait_for(name, timeout=timeout))

    def gather(self, *calls: FlowRequest) -> list[Any]:
        """Adds jobs as children, gives the slot back until all have ended, and answers their results in order."""
        return self._wait(lambda: self._job.gather(*calls))

    def postpone(self, delay: Duration = 0) -> NoReturn:
        self._job.postpone(delay)

    def discard(self) -> None:
        self._job.discard()

    def transaction(self, using: object = None) -> AbstractContextManager[Any]:
        """Commits the writes of the block and the job's completion together at its end, or neither."""
        if threading.get_ident() == self._loop_thread:
            return cast(AbstractContextManager[Any], self._job.transaction(using))
        return completing_blocking(self._job, using)

    def complete_with(self, result: Json) -> None:
        """The job's result, if the block of `transaction` ends well; None if this is not called."""
        complete_with(self._job, result)

    def _wait(self, call: Callable[[], Coroutine[Any, Any, T]]) -> T:
        if self._job.ended:
            raise JobFinished(self.queue.name, self.id)
        if threading.get_ident() == self._loop_thread:
            # The function returned a coroutine, as `lambda job: handle(job, db)` does: in it, calls are awaited.
            return cast(T, call())
        return asyncio.run_coroutine_threadsafe(call(), self._loop).result()
