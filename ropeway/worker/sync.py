"""The sync twin of a job claimed by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from datetime import datetime
from typing import TYPE_CHECKING, Any, NoReturn

from ..client.flows import FlowRequest
from ..client.portal import refuse_on_a_loop, run
from ..client.sync_flows import SyncFlowHandle
from ..client.sync_handle import SyncJobHandle
from ..job.backoff import Backoff
from ..job.codec import Json
from ..job.durations import Duration
from ..job.extras import Origin
from ..job.flows import Policy
from .completing import completing_blocking

if TYPE_CHECKING:
    from .manual import ClaimedJob


class SyncClaimedJob(SyncJobHandle):
    """The twin of `ClaimedJob`: nothing renews its lock for you; complete, fail, delay and release give it up."""

    __slots__ = ("_claimed",)

    def __init__(self, job: ClaimedJob) -> None:
        super().__init__(job)
        self._claimed = job

    @property
    def token(self) -> str:
        """The claim's token, by which `Worker.claimed_sync` can continue in another process."""
        return self._claimed.token

    @property
    def attempt(self) -> int:
        """1 for the first attempt; postponements and stalls do not count."""
        return self._claimed.attempt

    @property
    def cancelled(self) -> bool:
        return self._claimed.cancelled

    @property
    def schedule(self) -> str | None:
        """The id of the schedule that made it."""
        return self._claimed.schedule

    @property
    def origin(self) -> Origin | None:
        """Of a dead letter: the job that failed."""
        return self._claimed.origin

    def postpone(self, delay: Duration = 0) -> NoReturn:
        self._claimed.postpone(delay)

    def discard(self) -> None:
        """If this attempt fails there will be no other."""
        self._claimed.discard()

    def transaction(self, using: object = None) -> AbstractContextManager[Any]:
        """Commits the writes of the block and the job's completion together at its end, or neither."""
        refuse_on_a_loop("async with job.transaction()")
        return completing_blocking(self._claimed, using)

    def complete_with(self, result: Json) -> None:
        """The job's result, if the block of `transaction` ends well; None if this is not called."""
        self._claimed.complete_with(result)

    # Written by tools/twins.py: do not edit

    def step(
        self,
        name: str,
        function: Callable[..., Any],
        /,
        *args: Any,
        attempts: int = 1,
        timeout: Duration | None = None,
        backoff: Backoff | Duration | None = None,
        **kwargs: Any,
    ) -> Any:
        """Runs a function once in effect: its result is stored, and is the answer in every later attempt.

        `name` must be unique in this handler or phase; in a loop use `f"page-{n}"`. The result is JSON, or of the type
        that the function's annotation says. A `def` function runs in a thread. `attempts`, `timeout` and `backoff`
        (between its attempts) are those of the step. If the function raises `Unrecoverable`, that is stored, and
        `StepFailed` is raised now and in every later attempt.
        """
        return run(
            self._claimed.step(name, function, *args, attempts=attempts, timeout=timeout, backoff=backoff, **kwargs)
        )

    def sleep(self, delay: Duration | datetime, *, name: str | None = None) -> None:
        """Gives the slot back for a time, even of days, or until an instant (with a time zone). Uses no attempt.

        The handler begins again afterwards. Sleeps are told apart by their order in the handler or phase; give them
        names if that order may change. The time that the first attempt gave counts in later ones too. A sleep until an
        instant that has passed, or of a negative duration, is over at once.
        """
        run(self._claimed.sleep(delay, name=name))

    def wait_for(self, name: str, *, timeout: Duration | None = None) -> Json:
        """Waits for a signal, `await queue.signal(id, name, data)`, and answers its data.

        Gives the slot back meanwhile. Raises `SignalTimeout` after `timeout`, which begins with the first wait. A
        signal that came before is answered at once. How the wait ended is stored, and is the same in every later
        attempt.
        """
        return run(self._claimed.wait_for(name, timeout=timeout))

    def gather(self, *calls: Any) -> list[Any]:
        """Adds jobs as children, gives the slot back until all have ended, and answers their results in order.

        If one fails, this job fails with it, unless its `Flow` has `on_failure="ignore"`; then its result is None.
        """
        return run(self._claimed.gather(*calls))

    def progress(self, value: Json) -> None:
        """Stores the job's progress: any JSON value; a number from 0 to 100 is shown as a bar."""
        run(self._claimed.progress(value))

    def log(self, text: object) -> None:
        """Adds a line to the job's log, which keeps the newest 1,000 unless `keep_logs` says otherwise."""
        run(self._claimed.log(text))

    def update_data(self, data: Json) -> None:
        """Replaces the job's data, for this attempt and the next ones."""
        run(self._claimed.update_data(data))

    def add_children(
        self, flows: Iterable[FlowRequest], *, on_child_failure: Policy | None = None
    ) -> list[SyncFlowHandle]:
        """Adds jobs that this one can wait for: all of them, or none if one of their ids exists.

        A handler that waits begins again afterwards: give the children ids of their own, or add them only if
        `children_counts` shows none.
        """
        return [job.sync for job in run(self._claimed.add_children(flows, on_child_failure=on_child_failure))]

    def wait_for_children(self) -> None:
        """Returns if all children have ended; otherwise gives the slot back, and the handler begins again then.

        That uses no attempt. It leaves the handler by an exception. If a child has failed, the job fails, goes on or
        waits as `on_child_failure` says.
        """
        run(self._claimed.wait_for_children())

    def renew(self, duration: Duration | None = None) -> None:
        """Extends the lock, by the worker's `lock_duration` from now unless another is given."""
        run(self._claimed.renew(duration))

    def complete(self, result: Json = None) -> None:
        """Completes the job. A result that is not JSON is refused, and nothing changes."""
        run(self._claimed.complete(result))

    def fail(self, error: BaseException | str) -> None:
        """Records a failed attempt; the job's own `attempts` and `backoff` decide whether it is retried."""
        run(self._claimed.fail(error))

    def delay(self, delay: Duration) -> None:
        """Gives the job back, to be claimed after the delay; uses no attempt."""
        run(self._claimed.delay(delay))

    def release(self) -> None:
        """Gives the job back at once; uses no attempt."""
        run(self._claimed.release())

    # End of what tools/twins.py writes
