"""`Worker`: the public class that applications start."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self, TypeVar, Unpack, overload

from msgspec.structs import replace

from ..client.jobtype import JobType
from ..client.loading import refuse_while_loading
from ..client.name_hints import ON_WORKERS, Guided
from ..client.portal import is_on_a_loop, refuse_on_a_loop, run
from ..client.queue import Queue
from ..client.workers import Order, WorkerInfo
from ..errors import InvalidOption, RopewayError, SyncRefused
from ..job.choices import is_word, yes_or_no
from ..job.durations import Duration
from ..job.ids import new_worker_id
from ..job.names import job_name
from ..job.stages import check_callback_queues
from ..showing import shown
from .background import Background
from .handlers import EVERY_NAME, HandlerFunction, Handlers, handler_of, of_job_type
from .job import Job
from .listeners import Listener, Listeners
from .manual import ClaimedJob, Sweeps, claim_by_hand, claimed_before, names_to_claim
from .options import WorkerOptions, checked_concurrency, read_worker_options
from .registration import TypedRegistration
from .reports import Reports
from .retiring import callbacks_of
from .runtime import Runtime
from .service import log
from .signals import Stoppable, stopped_by_signals
from .stop_requests import StopRequests
from .sync import SyncClaimedJob
from .system_queues import SYSTEM_QUEUES, SystemQueue

D = TypeVar("D")
R = TypeVar("R")
F = TypeVar("F", bound=HandlerFunction)
L = TypeVar("L", bound=Listener)


class Worker(Guided):
    """Runs the jobs of one or several queues: `await Worker(queue, handler).run()`.

    It runs the tasks that its queues have when it starts. `handler` is one function for every other job, or a mapping
    from job names to functions; jobs of other names are left for workers that have a handler for them. `async def`
    functions run on the loop, `def` functions in threads.
    """

    _foreign_names = ON_WORKERS
    _system_queues: tuple[SystemQueue, ...] = SYSTEM_QUEUES
    """The queues that it may serve by companions, such as that of webhook deliveries."""

    def __init__(
        self,
        queues: Queue | Iterable[Queue],
        handler: HandlerFunction | Mapping[str, HandlerFunction] | None = None,
        **options: Unpack[WorkerOptions],
    ) -> None:
        self.queues = _checked_queues(queues)
        self.id = new_worker_id()
        self._rules = read_worker_options(options)
        if callbacks_of(self._rules):
            for queue in self.queues:
                check_callback_queues(queue.name)
        self.name = self._rules.name or self.id
        self._concurrency = self._rules.concurrency
        self._handlers = Handlers(handler)
        self._listeners = Listeners()
        self._sweeps = Sweeps(self._rules.stalled_interval)
        self._paused = False
        self._draining = False
        self._drained = False
        self._started_at = 0
        self._stopped_early = False
        self._runtime: Runtime | None = None
        self._requests = StopRequests()
        self._background: Background | None = None

    def __repr__(self) -> str:
        return f"<Worker {self.name!r} on {', '.join(queue.name for queue in self.queues)}>"

    async def run(self) -> None:
        """Runs until SIGTERM, SIGINT or `stop`, then shuts down gracefully; a second signal hurries it.

        Raises `ShutdownTimeout` if handlers did not stop, and any error that made the worker unable to continue.
        """
        requests = StopRequests()
        with stopped_by_signals(self.stop, requests.note) as stoppable:
            runtime = await self._start(requests, stoppable, heeds_early_stop=True)
            try:
                await runtime.stopping.wait()
            finally:
                await self._end(runtime, sys.exception())

    def run_sync(self) -> None:
        """`run` for code without an event loop: starts one on this thread.

        Outside the main thread no signal reaches it: end it with `stop`.
        """
        refuse_on_a_loop("await worker.run()")
        asyncio.run(self.run())

    async def __aenter__(self) -> Self:
        """Runs while the block runs, as part of an application; handles no signals."""
        await self._start()
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._runtime is not None:
            await self._end(self._runtime, error)

    def __enter__(self) -> Self:
        """`async with` for code without an event loop: it runs in a background thread while the block runs."""
        if is_on_a_loop():
            raise SyncRefused("this thread runs an event loop: use `async with` for the worker")
        background = Background(self._serve, self.stop)
        background.start()
        self._background = background
        return self

    def __exit__(self, *_: object) -> None:
        background, self._background = self._background, None
        if background is not None:
            background.end()

    def stop(self) -> None:
        """Asks the worker to shut down, from any thread; on the second call it no longer waits for its handlers.

        If called before the first `run`, that returns at once: the thread that calls `run` may only be starting.
        """
        if not self._started_at:
            self._stopped_early = True
        if self._runtime is not None:
            self._runtime.requests.note("call")
        self._on_runtime(Runtime.stop)

    @overload
    def handler(self, name: JobType[D, R]) -> TypedRegistration[D, R]: ...
    @overload
    def handler(self, name: str) -> Callable[[F], F]: ...
    def handler(self, name: str | JobType[Any, Any]) -> Any:
        """Registers a handler for a job name, `@worker.handler("send_email")`, or for a job type.

        The handler of a job type takes the data, or the job and the data, and returns the result, in its types.
        """
        if not isinstance(name, JobType):
            if callable(name):
                # `@worker.handler` without a name would silently drop the function.
                raise InvalidOption("handler", 'needs the name of its jobs: use @worker.handler("name")')
            if not is_word(name, EVERY_NAME):
                job_name(name)

        def register(function: Any) -> Any:
            if isinstance(name, JobType):
                self._handlers.register(name.name, of_job_type(name, function))
            else:
                self._handlers.register(name, handler_of(name, function))
            self._on_runtime(lambda runtime: runtime.dispatcher.wake_all())
            return function

        return register

    def on(self, event: str, listener: Listener | None = None) -> Any:
        """Calls `listener` for each event of that name; also as a decorator.

        Events of the worker's own work are emitted at once. Others of its queues, such as `added` or `drained`, are
        read from their streams, whichever process caused them.
        """

        def register(function: L) -> L:
            self._listeners.add(event, function)
            self._on_runtime(Runtime.follow)
            return function

        return register if listener is None else register(listener)

    def off(self, event: str, listener: Listener) -> None:
        """Removes a listener."""
        self._listeners.remove(event, listener)

    async def claim(
        self, limit: int = 1, *, names: Iterable[str] | None = None, wait: Duration | None = None
    ) -> list[ClaimedJob]:
        """Claims jobs for manual processing: renew, complete, fail or release them yourself.

        Takes only jobs of `names`; by default those that this worker has handlers for, or all if it has none. With
        `wait`, waits that long for a first job. Jobs that exceeded their `max_starts` are failed on the way.
        """
        wanted = self._handlers.own_names if names is None else names_to_claim(names)
        return await claim_by_hand(self.queues, self.id, wanted, limit, self._rules, self._sweeps, wait)

    def claim_sync(
        self, limit: int = 1, *, names: Iterable[str] | None = None, wait: Duration | None = None
    ) -> list[SyncClaimedJob]:
        """`claim` for code without an event loop."""
        return [job.sync for job in run(self.claim(limit, names=names, wait=wait))]

    async def claimed(self, id: str, token: str) -> ClaimedJob:
        """A job that was claimed before, in this or another process, by the `token` of that claim.

        Raises `LockLost` if the token is no longer valid.
        """
        return await claimed_before(self.queues, id, token, self._rules)

    def claimed_sync(self, id: str, token: str) -> SyncClaimedJob:
        """`claimed` for code without an event loop."""
        return run(self.claimed(id, token)).sync

    @property
    def concurrency(self) -> int:
        """Number of jobs it runs at once; can be set while it runs. Jobs that no longer fit in are handed back."""
        return self._concurrency

    @concurrency.setter
    def concurrency(self, value: int) -> None:
        self._concurrency = checked_concurrency(value)
        self._on_runtime(lambda runtime: runtime.resize(value))

    @property
    def webhooks(self) -> bool | None:
        """Whether it delivers webhooks; None if needed. Can be set before it runs."""
        return self._rules.webhooks

    @webhooks.setter
    def webhooks(self, value: bool | None) -> None:
        self._rules = replace(self._rules, webhooks=None if value is None else yes_or_no("webhooks", value))

    @property
    def grace(self) -> float:
        """Seconds that running jobs have to finish once it was asked to stop."""
        return self._rules.grace

    @property
    def grace_left(self) -> float:
        """Seconds that are left of `grace` since it was asked to stop, also when it has stopped; else all of them."""
        end = self._requests.ends_at(self._rules.grace, hurried=0)
        return self._rules.grace if end is None else max(0.0, end - time.monotonic())

    @property
    def paused(self) -> bool:
        return self._paused

    def pause(self) -> None:
        """Starts no more jobs in this worker until `resume`; running jobs go on. For all workers: `queue.pause()`.

        Jobs of a claim in flight are handed back; `idle` waits for that too.
        """
        self._hold(paused=True)

    def resume(self) -> None:
        """Ends a pause; also a drain, if its jobs have not ended yet."""
        self._hold(paused=False)

    def drain(self) -> None:
        """Starts no more jobs, lets those that run end, however long they take, and then stops. From any thread.

        For a worker as a context manager, that ends its work; the block goes on.
        """
        self._hold(paused=True, drain=True)

    @property
    def draining(self) -> bool:
        """True from `drain` until it has ended."""
        return self._draining

    @property
    def drained(self) -> bool:
        """True if its last run ended by `drain`."""
        return self._drained

    async def idle(self) -> None:
        """Waits until none of its jobs runs or is unsettled, and, after `pause`, no claim in flight can bring one.

        Not to be called in its own handlers, which would wait for themselves. Does not wait for `leaked` handlers.
        """
        if self._runtime is not None:
            await self._runtime.idle()

    def idle_sync(self) -> None:
        """`idle` for code without an event loop."""
        run(self.idle())

    @property
    def info(self) -> WorkerInfo:
        """The worker's entry in `queue.workers()` while it runs."""
        return self._describe()

    @property
    def running(self) -> list[Job]:
        """Jobs that it holds now."""
        return [] if self._runtime is None else list(self._runtime.slots.held)

    @property
    def leaked(self) -> int:
        """Number of handlers that did not stop, were given up, and still run."""
        return 0 if self._runtime is None else self._runtime.slots.leaked

    async def _start(
        self,
        requests: StopRequests | None = None,
        stoppable: Stoppable | None = None,
        *,
        heeds_early_stop: bool = False,
    ) -> Runtime:
        refuse_while_loading()
        if self._runtime is not None:
            raise RopewayError("this worker is already running")
        self._handlers.take_tasks(self.queues)
        self._requests = StopRequests() if requests is None else requests
        runtime = Runtime(
            self.queues,
            self._handlers,
            self._rules,
            self.id,
            self._make_reports(),
            self._describe,
            self._requests,
            stoppable,
        )
        runtime.companions.systems = tuple(system for system in self._system_queues if system.is_allowed(self._rules))
        runtime.obey = self._obey
        runtime.slots.size = self._concurrency
        runtime.dispatcher.claiming = not self._paused
        self._runtime = runtime
        self._started_at = int(time.time() * 1000)
        if self._stopped_early and heeds_early_stop:
            runtime.stop()
        self._stopped_early = False
        try:
            await runtime.start()
        except BaseException as error:
            await self._end(runtime, error)
            raise
        log.info("%r started", self)
        return runtime

    def _make_reports(self) -> Reports:
        return Reports(self._listeners, asyncio.get_running_loop())

    async def _serve(self, started: Callable[[], None]) -> None:
        async with self:
            runtime = self._runtime
            started()
            if runtime is not None:
                await runtime.stopping.wait()

    async def _end(self, runtime: Runtime, leaving: BaseException | None) -> None:
        """Shuts down completely. A cancel only hurries it: stopped half-way, it would renew its locks for ever."""
        ending = asyncio.ensure_future(self._shut_down(runtime))
        cancelled = leaving if isinstance(leaving, asyncio.CancelledError) else None
        while not ending.done():
            try:
                await asyncio.wait([ending])
            except asyncio.CancelledError as again:
                cancelled = again
                runtime.hurried.set()
        try:
            ending.result()
        except RopewayError:
            # At the end of a program every task is cancelled, the worker's together with its user's.
            if cancelled is None or not runtime.was_cancelled:
                raise
        if cancelled is not None and cancelled is not leaving:
            raise cancelled

    async def _shut_down(self, runtime: Runtime) -> None:
        try:
            await runtime.shut_down()
            log.info("%r has stopped", self)
        finally:
            self._runtime = None
            self._drained = runtime.was_drained
            if self._draining:
                # For the next run: this one has ended, by that or something else.
                self._draining = self._paused = False
            # Set by a `stop` that came while it was starting, and was passed to the runtime as well.
            self._stopped_early = False
            await self._listeners.finish(self._rules.cancel_grace)

    def _hold(self, *, paused: bool, drain: bool = False) -> None:
        if drain and self._runtime is None:
            self.stop()
            return
        self._paused, self._draining = paused, drain
        self._on_runtime(lambda runtime: runtime.pause(paused, drain))

    def _obey(self, order: Order) -> None:
        {"pause": self.pause, "resume": self.resume, "drain": self.drain}[order]()

    def _on_runtime(self, action: Callable[[Runtime], None]) -> None:
        runtime = self._runtime
        if runtime is not None:
            runtime.run_on_loop(lambda: action(runtime))

    def _describe(self) -> WorkerInfo:
        return WorkerInfo(
            self.id,
            self.name,
            socket.gethostname(),
            os.getpid(),
            tuple(queue.name for queue in self.queues),
            {queue.name: self._handlers.names(queue.name) for queue in self.queues},
            self._concurrency,
            len(self.running),
            self._started_at,
            self._paused,
            {queue.name: _given(queue) for queue in self.queues},
            self._draining,
        )


def _given(queue: Queue) -> dict[str, tuple[str, ...]]:
    """The names of the options that its tasks give their jobs."""
    of_pipelines = {name: {**queue.defaults, **task.options} for name, task in queue.pipelines.items()}
    return {name: tuple(given) for name, given in {**queue.tasks.defaults, **of_pipelines}.items() if given}


def _checked_queues(given: Queue | Iterable[Queue]) -> list[Queue]:
    several = given if isinstance(given, Iterable) else ()
    queues = [given] if isinstance(given, Queue) else list(several)
    if not queues or not all(isinstance(queue, Queue) for queue in queues):
        raise InvalidOption("queues", f"cannot be {shown(given)}: give a Queue or several")
    if len({queue.name for queue in queues}) < len(queues):
        raise InvalidOption("queues", "has the same queue name twice")
    return queues
