"""`SyncJob`: the job as `def` handlers receive it, in a thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, ClassVar, NoReturn, TypeVar, cast, overload

from ..client.flows import FlowRequest
from ..client.new_jobs import Call
from ..client.running import RunIn, RunningJob
from ..client.sync_flows import SyncFlowHandle
from ..errors import JobFinished
from ..job.backoff import Backoff
from ..job.codec import Json
from ..job.durations import Duration
from ..job.flows import ChildState, Policy
from ..job.marks import Mark
from .attempt_marks import AttemptMarks
from .blocking_steps import StepsInPlace
from .completing import complete_with, completing_blocking
from .job import Job

T = TypeVar("T")


class CallsToLoop:
    """Runs coroutines of a job on its loop, for its thread, which waits for them. Made on the loop."""

    __slots__ = ("_job", "_loop", "_thread")

    def __init__(self, job: Job) -> None:
        self._job = job
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()

    def are_on_loop(self) -> bool:
        """True in a coroutine that the function returned, as `lambda job: handle(job, db)` does: calls are awaited."""
        return threading.get_ident() == self._thread

    def wait(self, call: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The result of a call; on the loop itself, what can be awaited."""
        if self._job.ended:
            raise JobFinished(self._job.queue.name, self._job.id)
        if self.are_on_loop():
            return cast(T, call())
        return asyncio.run_coroutine_threadsafe(call(), self._loop).result()


class SyncJob(StepsInPlace, RunningJob):
    """The job as a `def` handler receives it; its calls block until they are answered."""

    run_in: ClassVar[RunIn] = "thread"

    def __init__(self, job: Job, calls: CallsToLoop) -> None:
        self._job = job
        self._is_on_loop = calls.are_on_loop
        self._wait = calls.wait
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
    def _steps(self) -> AttemptMarks:
        return self._job.run.marks

    def _refuse_after_giving_back(self) -> None:
        self._job.run.refuse_after_giving_back()

    @property
    def _result_limit(self) -> int:
        return self.queue.size_limit

    def _write_step(self, mark: Mark) -> None:
        self._wait(lambda: self._job.run.write_marks(mark))

    def _try_again(self, what: str, error: Exception, pause: float | None) -> bool:
        # On the loop, where `classify` is called for all other errors.
        return not self.cancelled and self._wait(lambda: self._job.run.try_again(what, error, pause))

    def step(
        self,
        name: str,
        function: Callable[..., T],
        /,
        *args: Any,
        attempts: int = 1,
        timeout: Duration | None = None,
        backoff: Backoff | Duration | None = None,
        **kwargs: Any,
    ) -> T:
        """Runs a function once in effect, where the handler runs; its stored result is the answer in later attempts.

        Nothing can stop it: that it took longer than `timeout` is noticed when it has ended.
        """
        if self._is_on_loop():
            step = self._job.step(name, function, *args, attempts=attempts, timeout=timeout, backoff=backoff, **kwargs)
            return cast(T, step)
        return super().step(name, function, *args, attempts=attempts, timeout=timeout, backoff=backoff, **kwargs)

    def sleep(self, delay: Duration | datetime, *, name: str | None = None) -> None:
        """Gives the slot back for a time, or until an instant; the handler begins again afterwards."""
        return self._wait(lambda: self._job.sleep(delay, name=name))

    def wait_for(self, name: str, *, timeout: Duration | None = None) -> Json:
        """Waits for a signal, and answers its data; gives the slot back meanwhile."""
        return self._wait(lambda: self._job.wait_for(name, timeout=timeout))

    @overload
    def gather(self, *calls: Call[T]) -> list[T]: ...
    @overload
    def gather(self, *calls: FlowRequest) -> list[Any]: ...
    def gather(self, *calls: Any) -> list[Any]:
        """Adds jobs as children, gives the slot back until all have ended, and answers their results in order."""
        return self._wait(lambda: self._job.gather(*calls))

    def postpone(self, delay: Duration = 0) -> NoReturn:
        self._job.postpone(delay)

    def discard(self) -> None:
        self._job.discard()

    def transaction(self, using: object = None) -> AbstractContextManager[Any]:
        """Commits the writes of the block and the job's completion together at its end, or neither."""
        if self._is_on_loop():
            return cast(AbstractContextManager[Any], self._job.transaction(using))
        return completing_blocking(self._job, using)

    def complete_with(self, result: Json) -> None:
        """The job's result, if the block of `transaction` ends well; None if this is not called."""
        complete_with(self._job, result)
