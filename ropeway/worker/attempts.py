"""Running one attempt, from a claimed job to its outcome."""

from __future__ import annotations

import asyncio
import inspect
import random
import time
from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from ..client.pipelines import Phase
from ..errors import AttemptTimeout, HandlerError, InvalidOption, NoHandler, Postponed, SignalTimeout
from ..job.backoff import Backoff, custom_delay
from ..job.codec import LARGEST_SIZE_LIMIT, encode
from ..job.failure import Failure, failure_of
from ..job.instants import Milliseconds
from ..job.marks import WAIT, Marking, scoped
from ..job.options import StoredOptions, stored_options
from ..job.outcomes import Classify, Outcome, attempts_remain, may_retry, verdict_of
from ..job.phases import failed
from ..job.retention import NOT_AT_ALL, Retention
from ..store.values import Answer
from .completing import committed
from .context import CurrentJob, isolated
from .failures import PayloadRefused
from .handlers import Handler, Handlers, InProcess
from .inputs import fill_inputs
from .job import REVOKED, Job, SendSignal, SyncJob
from .options import Rules
from .parking import Parkable
from .phase_context import PhaseContext, SyncPhaseContext
from .pipeline_plan import PipelinePlan
from .pipeline_run import PipelineRun
from .processes import Processes, source_of
from .service import log
from .threads import Threads

_UNREADABLE: Final = StoredOptions()
BROKEN_BACKOFF: Final = Backoff.exponential(1, max_delay=60)
"""Used when a custom backoff raises: a retry without any delay would use up all attempts at once."""


class Attempts:
    """Calls the handler of each job, and turns how it ended into an `Outcome`."""

    def __init__(
        self,
        handlers: Handlers,
        threads: Threads,
        processes: Processes,
        rules: Rules,
        signal: SendSignal,
    ) -> None:
        self._handlers = handlers
        self.threads = threads
        self._processes = processes
        self._rules = rules
        self._signal = signal
        self.current = CurrentJob()
        self.deadlines: dict[Job, float] = {}
        """When the attempts that have a timeout are overdue, on the monotonic clock."""
        self._returned: dict[Job, Any] = {}
        """Results of handlers in threads, until the loop has seen them."""

    @property
    def keep_completed(self) -> Retention:
        """Retention of completed jobs that do not set their own."""
        return self._rules.keep_completed

    async def run(self, job: Job) -> Outcome | Parkable | None:
        """Runs the handler; never raises, whatever the handler does. None if this worker has nothing to settle.

        Answers the attempt itself if that was parked: then `go_on` with it.
        """
        try:
            handler, options = self._prepare(job)
            if handler.is_plain and options.timeout is None and not options.takes:
                # Most jobs. Each coroutine in between would cost as much as a call of the handler.
                result = await isolated(handler.function(job), job, self.current)
                if handler.dump is not None:
                    result = handler.dump(result)
            elif handler.pipeline is not None and options.timeout is None and not options.takes:
                return await self.go_on(self._pipeline_run(handler.pipeline, job))
            else:
                result = await self._call(handler, options, job)
            return self._ended(job, result)
        except BaseException as error:  # noqa: BLE001 - SystemExit and the like fail the job, not the worker
            return await self._raised(job, error)

    async def go_on(self, attempt: Parkable) -> Outcome | Parkable | None:
        """Begins an attempt that may be parked, or goes on with it."""
        job = attempt.job
        try:
            result = await isolated(attempt.work, job, self.current, attempt)
            return attempt if result is attempt else self._ended(job, result)
        except BaseException as error:  # noqa: BLE001 - as above
            return await self._raised(job, error)

    def _pipeline_run(self, pipeline: PipelinePlan, job: Job) -> PipelineRun:
        slot = job.slot
        if slot is None:
            return PipelineRun(pipeline, job, self, job.queue.updates, may_park=False)
        return PipelineRun(pipeline, job, self, slot.updates(job.queue), may_park=True)

    def _ended(self, job: Job, result: Any) -> Outcome | None:
        """The outcome of an attempt whose handler returned; raises if it failed all the same."""
        if job.completion is not None and (outcome := committed(job)) is not None:
            return self._committed_before(job, outcome, result)
        if job.signal is not None:
            if job.signal == "timeout":
                raise self.overtime(job)
            if job.signal in REVOKED:
                return None
        try:
            return self._completed(job, result)
        except Exception:
            # Any object may raise when it is encoded; its effects have happened.
            job.discarded = True
            raise

    async def _raised(self, job: Job, error: BaseException) -> Outcome | None:
        if (outcome := committed(job)) is not None:
            return self._committed_before(job, outcome, None, error)
        return await self.outcome_of(job, error)

    def _committed_before(
        self, job: Job, outcome: Outcome, returned: Any, error: BaseException | None = None
    ) -> Outcome:
        """The committed outcome: what its handler did after the commit changes nothing."""
        if error is not None and job.signal is None:
            log.error("%r was completed by its transaction, and its handler raised after that", job, exc_info=error)
        elif returned is not None and outcome.result != _text(returned):
            log.warning("%r was completed by its transaction: what its handler returned is not stored", job)
        return outcome

    async def outcome_of(self, job: Job, error: BaseException) -> Outcome | None:
        options = job.options or _UNREADABLE
        match job.signal, error:
            case "cancelled" | "removed", _:
                return None
            case "shutdown" | "lost", _:
                # A lock that seemed lost may still hold: then the job waits again, and has used no attempt.
                return Outcome(job.id, job.token, "hand back", marking=_unstored(job))
            case "timeout", asyncio.CancelledError():
                error = self.overtime(job)
            case _, Postponed():
                children, mark = error.awaits_children, error.awaits
                return Outcome(
                    job.id,
                    job.token,
                    "postpone",
                    delay=error.delay,
                    awaits_children=children,
                    awaits=mark,
                    marking=job.marking,
                )
        job.error = error
        exhausted = not attempts_remain(options, job.record.attempts_made)
        delay: Milliseconds | None = None
        if not exhausted and not job.discarded and self._may_retry(job, error):
            delay = await self._delay(job, options, error)
        failure = failure_of(error)
        if delay is None:
            outcome = self._final(job, failure, options, exhausted)
            removed = isinstance(error, PayloadRefused) and self._rules.on_invalid == "remove"
            return replace(outcome, keep=NOT_AT_ALL) if removed else outcome
        return self._retry(job, failure, options, delay)

    def broken_off(self, job: Job, error: BaseException) -> Outcome:
        """The outcome of an attempt whose slot failed, which should not be possible."""
        job.error = error
        options = job.options or _UNREADABLE
        failure = Failure(f"WorkerCrashed: {type(error).__qualname__} broke off the attempt")
        exhausted = not attempts_remain(options, job.record.attempts_made)
        if exhausted or job.discarded:
            return self._final(job, failure, options, exhausted)
        return self._retry(job, failure, options, BROKEN_BACKOFF.after(job.attempt, 0))

    def _prepare(self, job: Job) -> tuple[Handler, StoredOptions]:
        """Reads the job's options and finds its handler, or raises why it cannot be run."""
        try:
            job.options = options = stored_options(job.record.options)
        except msgspec.MsgspecError as damage:
            job.discarded = True
            raise HandlerError(f"corrupt record: its options cannot be read: {damage}") from None
        job.keep = options.keep_completed or self._rules.keep_completed
        if options.max_starts is not None and (refusal := started_too_often(job)) is not None:
            raise refusal
        queue = job.queue.name
        handler = self._handlers.find(queue, job.name)
        if handler is None:
            raise NoHandler(job.name, self._handlers.names(queue) or ())
        job.dump = handler.dump
        return handler, options

    async def _call(self, handler: Handler, options: StoredOptions, job: Job) -> Any:
        if options.takes:
            await fill_inputs(job, options.takes)
        if options.timeout is None:
            return await self._invoke(handler, job)
        self.deadlines[job] = time.monotonic() + options.timeout / 1000
        timer = asyncio.get_running_loop().call_later(options.timeout / 1000, self._signal, job, "timeout")
        try:
            return await self._invoke(handler, job)
        finally:
            timer.cancel()
            del self.deadlines[job]

    def lost(self, job: Job, answer: Answer) -> None:
        """Stops the handler of a job that another update found to be no longer this worker's."""
        self._signal(job, "cancelled" if answer.state == "cancelled" else "lost")

    async def call_phase(self, phase: Phase, job: Job, context: PhaseContext) -> Any:
        """Calls the function of a phase, where it has to run."""
        function = phase.function
        if phase.is_async:
            return await function(job, context)
        if isinstance(function, InProcess):
            return await self._processes.run(source_of(function.function), job, context)
        await self.threads.engage()
        job.threaded = True
        try:
            twin = SyncJob(job, asyncio.get_running_loop())
            result = await self.threads.run(lambda each: function(each, SyncPhaseContext(context, each)), twin)
        finally:
            job.threaded = False
        # As of `lambda job, ctx: download(job, ctx, db)`.
        return await result if inspect.isawaitable(result) else result

    async def _invoke(self, handler: Handler, job: Job) -> Any:
        if handler.pipeline is not None:
            run = PipelineRun(handler.pipeline, job, self, job.queue.updates, may_park=False)
            return await isolated(run.work, job, self.current)
        if handler.run_in == "loop":
            return handler.json_of(await isolated(handler.function(job), job, self.current))
        if handler.source is not None:
            return await self._processes.run(handler.source, job)
        return await self._in_thread(handler, job)

    async def _in_thread(self, handler: Handler, job: Job) -> Any:
        await self.threads.engage()
        job.threaded = True
        try:
            result = await self.threads.run(self._noting(handler, job), SyncJob(job, asyncio.get_running_loop()))
        finally:
            self._returned.pop(job, None)
        job.threaded = False
        if not inspect.isawaitable(result):
            return result
        if job.signal is not None:
            # It was signalled while in its thread, where it could not be cancelled.
            if inspect.iscoroutine(result):
                result.close()
            raise asyncio.CancelledError
        return handler.json_of(await isolated(_awaiting(result), job, self.current))

    def _noting(self, handler: Handler, job: Job) -> Callable[[SyncJob], Any]:
        def call(twin: SyncJob) -> Any:
            result = self._returned[job] = handler.call_in_thread(twin)
            return result

        return call

    def completed_in_thread(self, job: Job) -> Outcome | None:
        """The completion of a job whose handler has returned in its thread, before the loop has seen it.

        From any thread.
        """
        if job not in self._returned or job.signal in ("timeout", "cancelled"):
            return None
        try:
            return self._completed(job, self._returned[job])
        except Exception:  # noqa: BLE001 - not JSON, or an awaitable: only the loop can handle it
            return None

    def _completed(self, job: Job, result: Any) -> Outcome:
        text = None if result is None else encode(result, "result", job.queue.size_limit)
        return Outcome(job.id, job.token, "complete", text, keep=job.keep, marking=job.marking)

    def _retry(self, job: Job, failure: Failure, options: StoredOptions, delay: Milliseconds) -> Outcome:
        return Outcome(
            job.id,
            job.token,
            "retry",
            failure=failure,
            delay=delay,
            stack_traces=options.stack_traces,
            marking=_failed_phase(job, failure),
        )

    def _final(self, job: Job, failure: Failure, options: StoredOptions, exhausted: bool) -> Outcome:
        marking = _failed_phase(job, failure)
        if isinstance(job.error, SignalTimeout):
            # Its wait begins again if the job is retried by hand.
            ended = Marking(forgets=(scoped(WAIT, job.phase, job.error.name),))
            marking = ended if marking is None else marking.then(ended)
        return Outcome(
            job.id,
            job.token,
            "fail",
            failure=failure,
            keep=options.keep_failed or self._rules.keep_failed,
            exhausted=exhausted,
            stack_traces=options.stack_traces,
            marking=marking,
        )

    def _may_retry(self, job: Job, error: BaseException) -> bool:
        return may_retry(error, job, *map(_guarded, filter(None, (self._rules.classify, job.queue.classify))))

    async def _delay(self, job: Job, options: StoredOptions, error: BaseException) -> Milliseconds | None:
        """The delay before the next attempt; None if there shall be none."""
        backoff = options.backoff
        if backoff is None:
            return 0
        luck = random.random()  # noqa: S311 - spreads load, keeps no secret
        if backoff.kind != "custom":
            return backoff.after(job.attempt, luck)
        try:
            return await self._custom_delay(job, backoff.name, error)
        except BaseException as broken:  # noqa: BLE001 - the user's function may raise anything
            log.error("backoff %r raised for %r: it is retried all the same", backoff.name, job, exc_info=broken)
            return BROKEN_BACKOFF.after(job.attempt, luck)

    async def _custom_delay(self, job: Job, name: str, error: BaseException) -> Milliseconds | None:
        function = self._rules.backoffs.get(name)
        if function is None:
            raise InvalidOption("backoffs", f"of this worker has no function named {name!r}")
        answer = function(job.attempt, error, job)
        return custom_delay(await answer if inspect.isawaitable(answer) else answer)

    def overtime(self, job: Job) -> AttemptTimeout:
        """The error of an attempt that exceeded its timeout."""
        timeout = job.options.timeout if job.options else None
        return AttemptTimeout((timeout or 0) / 1000)


def started_too_often(job: Job) -> HandlerError | None:
    """The error of a job that exceeded its `max_starts`, if it did: it fails for good, whatever attempts remain."""
    limit = job.options.max_starts if job.options else None
    if limit is None or job.record.attempts_started <= limit:
        return None
    job.discarded = True
    return HandlerError(f"job started more than allowable limit: max_starts is {limit}; retry(reset=True) starts over")


def _failed_phase(job: Job, failure: Failure) -> Marking | None:
    if job.phase is None:
        return None
    started = _unstored(job)
    ending = failed(job.phase, failure.reason)
    return ending if started is None else started.then(ending)


def _unstored(job: Job) -> Marking | None:
    """What an attempt that was broken off has posted: its outcome may overtake that, or it will not be sent."""
    if job.posted is None:
        return None
    job.posted.withdraw()
    return job.posted.change.marking


def _guarded(classify: Classify) -> Classify:
    def ask(error: BaseException, job: Any) -> bool | None:
        try:
            return verdict_of(classify, error, job)
        except BaseException as broken:  # noqa: BLE001 - the user's function may raise anything
            log.error("classify raised for %r: it is ignored", job, exc_info=broken)
            return None

    return ask


def _text(returned: Any) -> str | None:
    try:
        return encode(returned, "result", LARGEST_SIZE_LIMIT)
    except Exception:  # noqa: BLE001 - any object may raise when it is encoded
        return None


async def _awaiting(result: Any) -> Any:
    return await result
