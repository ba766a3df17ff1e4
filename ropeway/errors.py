"""Every error that Ropeway raises.

    RopewayError
    ├── InvalidInput (ValueError)        a call was given an invalid value
    │   ├── InvalidName                  a queue, job id or job name
    │   ├── InvalidOption                an option is unknown, of a wrong type or out of range
    │   ├── InvalidDuration              a duration or instant that cannot be read
    │   ├── InvalidTask                  a function that cannot be a task, or a name that is taken
    │   ├── InvalidArguments             they do not fit the task or the job type
    │   ├── InvalidPayload               data, result or progress that is not JSON
    │   │   └── PayloadTooLarge
    │   └── InvalidSignature             a webhook that was not signed with this secret, or is too old
    ├── JobError                         about one job; carries `queue` and `job_id`
    │   ├── JobNotFound
    │   ├── DuplicateJob                 the id is taken by a job with another name or other data
    │   ├── InvalidMove                  the job's state does not allow it; carries `state`
    │   ├── LockLost                     the job is no longer this worker's
    │   ├── PipelineChanged              its phases are others than when it began
    │   ├── GatherChanged                its `job.gather` has other calls than when it added its children
    │   ├── StepChanged                  the stored result of a step is not of the type its function has now
    │   ├── StepFailed (Unrecoverable)   a step raised Unrecoverable, in this attempt or an earlier one
    │   ├── SignalTimeout (TimeoutError) no signal came in time for `job.wait_for`
    │   ├── JobFinished                  a job was used after its handler ended
    │   ├── UnexpectedResult             the job's result is not of the type it is read as
    │   └── NoResult                     the job will never have a result
    │       ├── JobFailed
    │       ├── JobCancelled
    │       └── JobRemoved
    ├── ResultTimeout (TimeoutError)     the job is not finished yet
    ├── ScheduleNotFound                 carries `queue` and `schedule_id`
    ├── WorkerNotFound                   carries `worker_id`
    ├── QueueBusy                        obliterate was refused because jobs are active
    ├── StoreError                       an error of the store; carries `store`
    │   ├── StoreUnavailable             it cannot be reached or used now; the call may be repeated
    │   │   ├── NotConnected             no server answered, so nothing was sent
    │   │   ├── StoreBusy                other callers held its lock for too long
    │   │   ├── StoreFull                the disk or the memory is full
    │   │   └── StoreMissing             it does not exist, and this call must not create it
    │   ├── StoreRefused                 it must not be used in its current condition
    │   │   ├── StoreCorrupt
    │   │   ├── StoreVersion             written by a newer Ropeway
    │   │   └── StoreReadOnly
    │   ├── StoreClosed                  used after `close`, or in a forked child that cannot use it
    │   └── NoTransactions               it cannot share a transaction with its caller
    ├── HandlerError                     raised for a handler's attempt; stored as the job's reason
    │   ├── AttemptTimeout
    │   ├── NoHandler
    │   └── WorkerCrashed
    ├── Unrecoverable                    raise it in a handler: no retry can help
    ├── SyncRefused (RuntimeError)       a sync call was made where it must not block
    └── ShutdownTimeout (TimeoutError)   handlers ignored the end of the grace period

`Postponed`, at the end of this file, is not an error: a handler raises it to be run again later.
"""

from __future__ import annotations

from collections.abc import Iterable

from .showing import LONGEST_MESSAGE, either, on_one_line, shortened, shown, with_article


class RopewayError(Exception):
    """The base class: catch it to catch every error that Ropeway raises."""


class InvalidInput(RopewayError, ValueError):
    """A call was given an invalid value; nothing was stored."""

    def __init__(self, message: str) -> None:
        super().__init__(on_one_line(message, LONGEST_MESSAGE))

    item: int | None = None
    """In a bulk, the position of the item, counted from 0."""
    place: str | None = None
    """In a flow, the path to the job, as in `flow.children[3].children[0]`."""


class InvalidName(InvalidInput):
    def __init__(self, what: str, given: object, remedy: str) -> None:
        self.what, self.given, self.remedy = what, given, remedy
        super().__init__(f"{shown(given)} cannot be {with_article(what)}: {remedy}")


class InvalidOption(InvalidInput):
    """`option` is unknown, of a wrong type or out of range; `problem` says which."""

    def __init__(self, option: str, problem: str) -> None:
        self.option, self.problem = option, problem
        super().__init__(f"option {shown(option)} {problem}")


class InvalidDuration(InvalidInput):
    def __init__(self, given: object, problem: str, option: str | None = None) -> None:
        self.given, self.problem, self.option = given, problem, option
        super().__init__(f"{f'option {shown(option)}: ' if option else ''}{shown(given)} {problem}")


class InvalidTask(InvalidInput):
    """`task` is the name of a function that cannot be a task, or one that is taken."""

    def __init__(self, task: str, problem: str) -> None:
        self.task, self.problem = task, problem
        super().__init__(f"{shown(task)} cannot be a task: {problem}")


class InvalidArguments(InvalidInput, TypeError):
    """`takes` describes what the task's function, or the job type, expects."""

    def __init__(self, name: str, problem: str, takes: str) -> None:
        self.name, self.problem, self.takes = name, problem, takes
        super().__init__(f"{shown(name)} cannot be added: {problem}; it takes {takes}")


class InvalidPayload(InvalidInput, TypeError):
    """`path` says where in the value the problem is, as in `$.rows[3].when`."""

    def __init__(self, what: str, path: str, problem: str) -> None:
        self.what, self.path, self.problem = what, path, problem
        super().__init__(f"{what} cannot be stored as JSON: {path} {problem}")


class PayloadTooLarge(InvalidPayload):
    """`size` and `limit` are bytes of the encoded JSON."""

    def __init__(self, what: str, size: int, limit: int) -> None:
        self.size, self.limit = size, limit
        super().__init__(what, "$", f"takes {size} bytes, {limit} are allowed; store it elsewhere and pass a reference")


class InvalidSignature(InvalidInput):
    """A request is not a webhook that was signed with the secret; `problem` says why."""

    def __init__(self, problem: str) -> None:
        self.problem = problem
        super().__init__(f"this is no webhook to trust: {problem}")


class JobError(RopewayError):
    def __init__(self, queue: str, job_id: str, message: str) -> None:
        self.queue, self.job_id = queue, job_id
        super().__init__(shortened(message, LONGEST_MESSAGE))


class JobNotFound(JobError):
    """No such job: it was never added, or was removed after it finished."""

    def __init__(self, queue: str, job_id: str) -> None:
        super().__init__(
            queue,
            job_id,
            f"queue {queue!r} has no job {job_id!r}: it was never added, or was removed after it finished",
        )


class ScheduleNotFound(RopewayError):
    """No such schedule: it was never made, or was removed."""

    def __init__(self, queue: str, schedule_id: str) -> None:
        self.queue, self.schedule_id = queue, schedule_id
        message = f"queue {queue!r} has no schedule {shown(schedule_id)}: `queue.schedules.list()` lists those it has"
        super().__init__(message)


class WorkerNotFound(RopewayError):
    """No such worker runs now: it has ended, or its record has run out."""

    def __init__(self, worker_id: str) -> None:
        self.worker_id = worker_id
        super().__init__(f"no worker {shown(worker_id)} runs now: `ropeway workers list` lists those that do")


class DuplicateJob(JobError):
    """The id is taken by a job with another name or other data; nothing of the call was stored."""

    item: int | None = None
    """In a bulk, the position of the job, counted from 0."""

    def __init__(self, queue: str, job_id: str, *, is_child: bool = False) -> None:
        problem = (
            f"queue {queue!r} already has a job {job_id!r}, which cannot become a child: use another id"
            if is_child
            else f"queue {queue!r} already has a job {job_id!r} with another name or other data: "
            "use another id, remove that job, or change its data with queue.change()"
        )
        super().__init__(queue, job_id, problem)


class InvalidMove(JobError):
    """The job is in a `state` that does not allow the call (`allowed` lists those that do); nothing was changed."""

    def __init__(self, queue: str, job_id: str, move: str, state: str, allowed: Iterable[str]) -> None:
        self.move, self.state, self.allowed = move, state, tuple(allowed)
        super().__init__(
            queue,
            job_id,
            f"job {job_id!r} is {state}, and {move!r} is for jobs that are {either(self.allowed)}",
        )


class LockLost(JobError):
    """The job is no longer this worker's: its calls are refused."""

    def __init__(self, queue: str, job_id: str) -> None:
        super().__init__(
            queue,
            job_id,
            f"job {job_id!r} is no longer held by this worker: its lock ran out, or it was cancelled or removed",
        )


class PipelineChanged(JobError):
    """The phases of the pipeline are others than those with which the job began; it fails, and is not retried."""

    def __init__(self, queue: str, job_id: str, before: Iterable[str], now: Iterable[str]) -> None:
        self.before, self.now = tuple(before), tuple(now)
        added = [name for name in self.now if name not in self.before]
        gone = [name for name in self.before if name not in self.now]
        changes = [f"new: {', '.join(map(repr, added))}"] if added else []
        changes += [f"gone: {', '.join(map(repr, gone))}"] if gone else []
        told = "; ".join(changes) or f"the order was {', '.join(self.before)}"
        if not self.now:
            told = "its handler is a function without phases now"
        super().__init__(
            queue,
            job_id,
            f"the pipeline of {job_id!r} in {queue!r} has changed since the job began ({told}): retry it with "
            f"from_phase=... (one of {', '.join(self.before)}), or run it by a worker with the old pipeline",
        )


class GatherChanged(JobError):
    """A `job.gather` has more or fewer calls than in the attempt that added its children; the job is not retried."""

    def __init__(self, queue: str, job_id: str, before: int, now: int) -> None:
        self.before, self.now = before, now
        super().__init__(
            queue,
            job_id,
            f"job.gather of {job_id!r} in {queue!r} has {now} calls, and added {before} children in an earlier attempt"
            ": give it the same calls in every attempt, for example by a list that is the result of a step",
        )


class Unrecoverable(RopewayError):
    """Raise it in a handler when no retry can help: the job fails at once."""


class StepChanged(JobError):
    """The stored result of a step does not fit the annotation that its function has now; the job is not retried."""

    def __init__(self, queue: str, job_id: str, step: str, problem: str) -> None:
        self.step, self.problem = step, problem
        super().__init__(
            queue,
            job_id,
            f"the stored result of step {shown(step)} of {job_id!r} in {queue!r} is not what its function says now: "
            f"{problem}; let the function return the former type, or give the step another name, and retry the job",
        )


class StepFailed(JobError, Unrecoverable):
    """The function of a step raised `Unrecoverable`: that is stored, and raised again in every later attempt.

    `reason` says what it raised.
    """

    def __init__(self, queue: str, job_id: str, step: str, reason: str) -> None:
        self.step, self.reason = step, reason
        super().__init__(queue, job_id, f"step {shown(step)} failed: {reason}")


class SignalTimeout(JobError, TimeoutError):
    """No signal of this name came within the timeout of `job.wait_for`. A job that it leaves is not retried.

    `others` are signals of other names that came, and that no wait has answered.
    """

    def __init__(self, queue: str, job_id: str, name: str, others: Iterable[str] = ()) -> None:
        self.name, self.others = name, tuple(others)
        came = f"; there came {', '.join(map(shown, self.others))}" if self.others else ""
        super().__init__(queue, job_id, f"no signal {shown(name)} came for {job_id!r} in {queue!r} in time{came}")


class JobFinished(JobError):
    """A job was used after its handler ended (by code it left running), or after it was settled manually.

    Also the context of a phase, after that has ended.
    """

    def __init__(self, queue: str, job_id: str, phase: str | None = None) -> None:
        told = f"job {job_id!r} has ended here, and is held no longer"
        remedy = "await what a handler starts before it returns, and settle by hand once"
        if phase is not None:
            told, remedy = f"phase {phase!r} of job {job_id!r} has ended", "await what a phase starts before it returns"
        super().__init__(queue, job_id, f"{told}: {remedy}")


class UnexpectedResult(JobError):
    """The job completed, but its result is not of the expected type."""

    def __init__(self, queue: str, job_id: str, problem: str) -> None:
        self.problem = problem
        super().__init__(
            queue,
            job_id,
            f"the result of job {job_id!r} is not what its task says: {problem}; "
            "as it was stored it is in (await job.refresh()).result",
        )


class NoResult(JobError):
    """The job ended, or was removed, without a result."""


class JobFailed(NoResult):
    """The job failed for good; `reason` comes from its last attempt."""

    def __init__(self, queue: str, job_id: str, reason: str) -> None:
        self.reason = reason
        super().__init__(queue, job_id, f"job {job_id!r} failed: {reason}")


class JobCancelled(NoResult):
    """The job was cancelled, for `reason` if one was given."""

    def __init__(self, queue: str, job_id: str, reason: str | None = None) -> None:
        self.reason = reason
        super().__init__(queue, job_id, f"job {job_id!r} was cancelled" + (f": {reason}" if reason else ""))


class JobRemoved(NoResult):
    """The job was removed, and its result with it."""

    def __init__(self, queue: str, job_id: str) -> None:
        super().__init__(queue, job_id, f"job {job_id!r} was removed, and its result with it: see remove_on_complete")


class ResultTimeout(RopewayError, TimeoutError):
    """The job had not finished after `seconds`; it goes on. `unserved` is the store if its queue had no worker then."""

    def __init__(self, queue: str, job_id: str, seconds: float, state: str, unserved: str | None = None) -> None:
        self.queue, self.job_id, self.seconds, self.state, self.unserved = queue, job_id, seconds, state, unserved
        why = f", and no worker runs on queue {queue!r} of {unserved}" if unserved else ""
        super().__init__(f"job {job_id!r} did not finish within {seconds:g} s: it is {state}{why}")


class QueueBusy(RopewayError):
    """The queue was not obliterated because of its `active` jobs; it is paused now."""

    def __init__(self, queue: str, active: int) -> None:
        self.queue, self.active = queue, active
        super().__init__(
            f"queue {queue!r} has {active} active jobs and is now paused: "
            "wait until they end, or call obliterate(force=True)"
        )


class StoreError(RopewayError):
    """An error of the store; `store` is its URL or path."""

    def __init__(self, store: str, message: str) -> None:
        self.store = store
        super().__init__(shortened(f"{store}: {message}", LONGEST_MESSAGE))


class StoreUnavailable(StoreError):
    """The store cannot be used now. The same call can be repeated.

    If it is not one of the subclasses, it is unknown whether the call took effect.
    """


class NotConnected(StoreUnavailable):
    """No server could be reached, so nothing was sent: the call has not taken effect."""


class StoreBusy(StoreUnavailable):
    pass


class StoreFull(StoreUnavailable):
    pass


class StoreMissing(StoreUnavailable):
    """Raised after `connect(..., create=False)` if the store does not exist; the first added job creates it."""


class StoreRefused(StoreError):
    """The store must not be used as it is; repeating the call cannot help."""


class StoreCorrupt(StoreRefused):
    pass


class StoreVersion(StoreRefused):
    pass


class StoreReadOnly(StoreRefused):
    pass


class StoreClosed(StoreError):
    """Its handle was closed: by `close`, or at the end of the block of the queue that it belongs to."""

    def __init__(self, store: str, message: str = "") -> None:
        super().__init__(
            store,
            message or "it was closed, as a queue is at the end of its block: enter that again, or make another Queue",
        )


class NoTransactions(StoreError):
    """`tx=` and `transaction()` are for stores that can share a transaction with their caller."""

    def __init__(self, store: str) -> None:
        super().__init__(
            store,
            "it cannot share a transaction with its caller: PostgreSQL (postgresql://) and SQLite (sqlite://) can",
        )


class HandlerError(RopewayError):
    """The reason of an attempt that did not end by an error of its handler."""


class AttemptTimeout(HandlerError):
    """An attempt, or the step or phase that `what` names, took longer than its timeout."""

    def __init__(self, seconds: float, what: str = "the attempt") -> None:
        self.seconds, self.what = seconds, what
        super().__init__(f"{what} took longer than its timeout of {seconds:g} s")


class NoHandler(HandlerError):
    def __init__(self, name: str, known: Iterable[str]) -> None:
        self.name, self.known = name, tuple(known)
        super().__init__(f"no handler for {name!r}; this worker has {', '.join(map(repr, self.known)) or 'none'}")


class WorkerCrashed(HandlerError):
    pass


class SyncRefused(RopewayError, RuntimeError):
    """A sync call was made where it must not block: on the thread of an event loop, or when Python ends."""

    def __init__(self, why: str) -> None:
        self.why = why
        super().__init__(f"the sync call was refused: {why}")


class ShutdownTimeout(RopewayError, TimeoutError):
    """Handlers were still running after the grace period; their jobs were handed back."""

    def __init__(self, seconds: float, job_ids: Iterable[str]) -> None:
        self.seconds, self.job_ids = seconds, tuple(job_ids)
        super().__init__(
            f"handlers still ran {seconds:.1f} s after the worker was asked to stop; their jobs were handed back and "
            f"will run again: {', '.join(self.job_ids[:10])}"
        )


class Postponed(BaseException):
    """Raised by `job.postpone()`, `job.sleep()` and the like: the job goes back without using an attempt.

    It is no `Exception`, so that a handler's `except Exception` does not keep the job from going back.
    """

    def __init__(self, delay: int, *, awaits_children: bool = False, awaits: str | None = None) -> None:
        self.delay, self.awaits_children, self.awaits = delay, awaits_children, awaits
        super().__init__("waits for its children" if awaits_children else f"postponed by {delay} ms")
