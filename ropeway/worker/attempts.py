"""Running one attempt, from a claimed job to its outcome."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec

from ..client.pipelines import Phase
from ..errors import AttemptTimeout, HandlerError, NoHandler, Postponed
from ..job.options import StoredOptions, stored_options
from ..job.outcomes import Outcome
from ..store.values import Answer
from .context import CurrentJob, isolated
from .handlers import Handler, Handlers, InProcess
from .inputs import fill_inputs
from .job import Interrupt, Job
from .options import Rules
from .outcome_rules import OutcomeRules, started_too_often
from .parking import Parkable
from .phase_context import PhaseContext, SyncPhaseContext
from .pipeline_run import PipelineRun, refuse_plain_handler
from .processes import Processes, source_of
from .thread_job import CallsToLoop, SyncJob
from .threads import Threads


class Attempts:
    """Calls the handler of each job. `outcomes` decides what becomes of the job then."""

    def __init__(
        self,
        handlers: Handlers,
        threads: Threads,
        processes: Processes,
        rules: Rules,
        interrupt: Interrupt,
        give_up: Callable[[Job], None] = lambda _: None,
    ) -> None:
        """`give_up` ends the attempt of a handler that does not stop."""
        self._handlers = handlers
        self.threads = threads
        self._processes = processes
        self._rules = rules
        self.outcomes = OutcomeRules(rules)
        self._interrupt = interrupt
        self._give_up = give_up
        self.current = CurrentJob()
        self.deadlines: dict[Job, float] = {}
        """When the attempts that have a timeout are overdue, on the monotonic clock."""
        self._returned: dict[Job, Any] = {}
        """Results of handlers in threads, until the loop has seen them."""

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
                return await self.go_on(PipelineRun(handler.pipeline, job, self, may_park=True))
            else:
                result = await self._call(handler, options, job)
            if job.has_running_steps:
                await self._end_of_steps(job)
            return self.outcomes.returned(job, result)
        except BaseException as error:  # noqa: BLE001 - SystemExit and the like fail the job, not the worker
            return await self._raised(job, error)

    async def go_on(self, attempt: Parkable) -> Outcome | Parkable | None:
        """Begins an attempt that may be parked, or goes on with it."""
        job = attempt.job
        try:
            try:
                result = attempt.advance(self.current)
            except StopIteration as done:
                # Without a coroutine in between: most phases end, or the job parks, before anything else is awaited.
                return self.outcomes.returned(job, done.value)
            if result is not attempt:
                result = await attempt.awaiting(result, self.current)
            return attempt if result is attempt else self.outcomes.returned(job, result)
        except BaseException as error:  # noqa: BLE001 - as above
            return await self._raised(job, error)

    async def _raised(self, job: Job, error: BaseException) -> Outcome | None:
        if job.has_running_steps:
            job.run.end_tries()
            await self._end_of_steps(job)
        return await self.outcomes.raised(job, error)

    async def _end_of_steps(self, job: Job) -> None:
        """Waits for steps that the handler has left running: another attempt would run them a second time.

        Not once it is told to stop. The cancel that says so ends the wait, and `job.interruption` remains.
        """
        if job.interruption is None:
            with suppress(asyncio.CancelledError):
                await job.run.end_of_steps()

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
        if job.record.marks and handler.pipeline is None:
            refuse_plain_handler(job)
        job.dump = handler.dump
        return handler, options

    async def _call(self, handler: Handler, options: StoredOptions, job: Job) -> Any:
        if options.takes:
            await fill_inputs(job, options.takes)
        if options.timeout is None:
            return await self._invoke(handler, job)
        self.deadlines[job] = time.monotonic() + options.timeout / 1000
        timer = asyncio.get_running_loop().call_later(options.timeout / 1000, self._interrupt, job, "timeout")
        try:
            return await self._invoke(handler, job)
        except BaseException:
            if job.has_running_steps:
                job.run.end_tries()
            raise
        finally:
            if job.has_running_steps:
                await self._end_of_steps(job)
            timer.cancel()
            del self.deadlines[job]

    def lost(self, job: Job, answer: Answer) -> None:
        """Stops the handler of a job that another update found to be no longer this worker's."""
        self._interrupt(job, "cancelled" if answer.state == "cancelled" else "lost")

    def watch(self, job: Job, timeout: float, what: str) -> asyncio.TimerHandle:
        """Gives the job up if the timeout of its step or phase and `cancel_grace` pass, unless it is cancelled."""
        return asyncio.get_running_loop().call_later(
            timeout + self._rules.cancel_grace, self._exceed, job, timeout, what
        )

    def _exceed(self, job: Job, timeout: float, what: str) -> None:
        if not job.ended and job.interruption is None:
            job.interruption, job.error = "timeout", AttemptTimeout(timeout, what)
            self._give_up(job)

    async def call_phase(self, phase: Phase, job: Job, context: PhaseContext) -> Any:
        """Calls the function of a phase, where it has to run. What a `def` function returns may have to be awaited."""
        function = phase.function
        if phase.is_async:
            return await function(job, context)
        if isinstance(function, InProcess):
            return await self._processes.run(source_of(function.function), job, context)
        await self.threads.engage()
        job.threaded = True
        try:
            calls = CallsToLoop(job)
            blocking = SyncPhaseContext(context, job, calls)
            result = await self.threads.run(lambda each: function(each, blocking), SyncJob(job, calls))
        finally:
            job.threaded = False
        if inspect.isawaitable(result):
            _refuse_if_interrupted(job, result)
        return result

    async def _invoke(self, handler: Handler, job: Job) -> Any:
        if handler.pipeline is not None:
            run = PipelineRun(handler.pipeline, job, self, may_park=False)
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
            result = await self.threads.run(self._noting(handler, job), SyncJob(job, CallsToLoop(job)))
        finally:
            self._returned.pop(job, None)
        job.threaded = False
        if not inspect.isawaitable(result):
            return result
        _refuse_if_interrupted(job, result)
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
        if job not in self._returned or job.interruption in ("timeout", "cancelled"):
            return None
        try:
            return self.outcomes.completed(job, self._returned[job])
        except (Exception, Postponed):  # noqa: BLE001 - not JSON, or an awaitable: only the loop can handle it
            return None


def _refuse_if_interrupted(job: Job, result: Any) -> None:
    """Refuses to await what a function returned, if the job was interrupted in its thread, where nothing cancels it."""
    if job.interruption is None:
        return
    if inspect.iscoroutine(result):
        result.close()
    raise asyncio.CancelledError


async def _awaiting(result: Any) -> Any:
    return await result
