"""Running all jobs of a queue inside a test."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Mapping
from functools import wraps
from typing import Any, Final, Literal, ParamSpec, TypeAlias, TypeVar, Unpack

from msgspec.structs import replace

from ..client.portal import refuse_on_a_loop
from ..client.queue import Queue
from ..errors import InvalidOption, RopewayError
from ..job.durations import Duration, milliseconds
from ..job.instants import LAST_INSTANT, Instant, Milliseconds
from ..job.numbers import whole
from ..store.commands import Find
from ..store.contract import Store
from ..store.values import BATCH, Lock
from ..worker.handlers import HandlerFunction
from ..worker.job import Job
from ..worker.options import WorkerOptions
from ..worker.worker import Worker
from .clock import FakeClock
from .drain_recorder import DrainRecorder
from .drained import Drained
from .fake_loop import FakeLoop, Jump, Pace, Wait
from .store import fake_store
from .webhooks import Receiver, ToReceiver, WebhookRequest, delivering, waiting_deliveries

P = ParamSpec("P")
T = TypeVar("T")
Until: TypeAlias = Literal["idle", "due"]

PATIENCE: Final = 60.0
MOST_DELIVERIES: Final = 100
"""Most attempts of one delivery, before its receiver is taken for one that postpones it for ever."""
MARGIN: Final[Milliseconds] = 60_000
"""For how long the lock of a handler that slept outlasts its sleep: the worker renews it before that."""
CHANCE: Final = 0.005
"""Real seconds that are given to other code to end a handler's sleep, before the clock is advanced."""


async def drain(
    what: Queue | Iterable[Queue] | Worker,
    handler: HandlerFunction | Mapping[str, HandlerFunction] | None = None,
    *,
    until: Until = "idle",
    raise_failures: bool = True,
    max_jobs: int = 1_000,
    patience: Duration = 60,
    receiver: Receiver | None = None,
    **options: Unpack[WorkerOptions],
) -> Drained:
    """Runs the jobs of a queue, of several, or of a worker's queues, until there is nothing left to do.

    A real worker runs them, one at a time and in order unless `concurrency` is given. The store's clock is advanced to
    whatever comes next: retries, delays, expiring locks and sleeps of handlers. With `until="due"` it runs only what is
    due now, and what follows from that at once.

    If jobs failed for good, it raises the error of the first one's handler, unless `raise_failures` is False. It gives
    up after `max_jobs` runs (jobs may add jobs for ever), and if a handler waits for `patience` real seconds for
    something other than time.

    Webhooks of the jobs are sent nowhere: `Drained.webhooks` has what waits to be sent. With `receiver`, a function
    that takes a `WebhookRequest` and may answer with a status, they are delivered to that, with their retries.
    """
    if until not in ("idle", "due"):
        raise InvalidOption("until", f'cannot be {until!r}: use "idle" or "due"')
    concurrency = options.pop("concurrency", 1)
    worker = _worker(what, handler, options)
    draining = Draining(worker, until, whole("max_jobs", max_jobs, 1), milliseconds(patience, "patience") / 1000)
    usual, worker.concurrency = worker.concurrency, concurrency
    usual_webhooks, worker.webhooks = worker.webhooks, False
    try:
        drained = await draining.run()
    finally:
        worker.concurrency, worker.webhooks = usual, usual_webhooks
    stores = {id(queue.store): queue.store for queue in worker.queues}.values()
    drained = replace(drained, webhooks=[one for store in stores for one in await _webhooks(store, until, receiver)])
    if raise_failures:
        drained.raise_failures()
    return drained


async def _webhooks(store: Store, until: Until, receiver: Receiver | None) -> list[WebhookRequest]:
    """What waits to be sent, or was given to the receiver."""
    waiting = await waiting_deliveries(store)
    if receiver is None or not waiting:
        return waiting
    sender = ToReceiver(receiver)
    await Draining(delivering(store, sender), until, len(waiting) * MOST_DELIVERIES, PATIENCE).run()
    return sender.requests


def _sync(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        refuse_on_a_loop(f"await {function.__name__}(...)")
        return asyncio.run(function(*args, **kwargs))

    return run


drain_sync = _sync(drain)
"""`drain` for tests without an event loop."""


class Draining(Pace):
    """One call of `drain`: runs the worker, and advances the clock whenever nothing is left to run."""

    def __init__(self, worker: Worker, until: Until, max_jobs: int, patience: float) -> None:
        self._worker = worker
        self._until = until
        self._max_jobs = max_jobs
        self._patience = patience
        self._clock = _clock_of(worker)
        self._recorder = DrainRecorder(worker, self._started)
        self._names: Counter[str] = Counter()
        self._quiet: asyncio.Future[Milliseconds | None] = asyncio.get_running_loop().create_future()
        self._fake_loop: FakeLoop | None = None
        self._jump: Milliseconds = 0
        self._sleep: Milliseconds | None = None
        """The distance of the next timer that is no poll of the worker, if polls come before it."""
        self._slept: asyncio.TimerHandle | None = None
        self._since = time.monotonic()

    async def run(self) -> Drained:
        with self._clock.controlling_loop() as self._fake_loop, self._recorder.recording():
            async with self._worker:
                with self._fake_loop.paced_by(self):
                    try:
                        await self._follow()
                    except BaseException:
                        # The second call makes it not wait for handlers.
                        self._worker.stop()
                        self._worker.stop()
                        raise
            return await self._recorder.read()

    async def _follow(self) -> None:
        while True:
            distance = await self._quiet
            self._quiet = asyncio.get_running_loop().create_future()
            if self._sleep is not None:
                self._jump, self._sleep = await self._pass_polls(self._sleep) or distance or 0, None
                continue
            next_at = None if self._until == "due" else await self._next_at()
            if next_at is None:
                return
            ahead = next_at - self._clock.instant
            # A job that is due but was not noticed yet waits for the worker's next poll.
            self._jump = ahead if ahead > 0 else distance or 0

    async def _pass_polls(self, sleep: Milliseconds) -> Milliseconds:
        """How far the clock can be advanced at once while handlers sleep; 0 if something is due now.

        The worker's own services poll once, at the end. Locks, which one of them renews, are renewed beforehand.
        """
        start, worker = self._clock.instant, self._worker
        for queue in worker.queues:
            locks = [Lock(job.id, job.token) for job in worker.running if job.queue.name == queue.name]
            if locks:
                await queue.store.renew(queue.name, locks, sleep + MARGIN)
        ticks = [fake_store(queue).next_tick_at() for queue in worker.queues]
        return max(0, min([start + sleep, *(at for at in ticks if at is not None)]) - self._clock.instant)

    async def _next_at(self) -> Instant | None:
        """When the next delay or lock ends; timers in between need not be waited for separately."""
        instants: list[Instant | None] = []
        for queue in self._worker.queues:
            delayed = await queue.store.find(Find(queue.name, ("delayed",), limit=1))
            active = await queue.store.find(Find(queue.name, ("active",), limit=BATCH))
            instants += [job.due_at for job in delayed.jobs] + [job.lock_until for job in active.jobs]
        # One at the end of time waits for a signal, or for the job that holds its dedupe key.
        return min((instant for instant in instants if instant is not None and instant < LAST_INSTANT), default=None)

    def idle(self, distance: Milliseconds | None) -> Jump | Wait:
        assert self._fake_loop is not None
        if self._jump or self._quiet.done():
            by, self._jump = self._jump, 0
            return Jump(by)
        if not self._worker.running:
            self._since = time.monotonic()
            self._quiet.set_result(distance)
            return Jump(0)
        sleeper = self._fake_loop.sleeper
        if sleeper is None:
            return self._wait()
        if sleeper is not self._slept:
            self._slept = sleeper
            return Wait(CHANCE)
        self._since = time.monotonic()
        sleep = self._fake_loop.next_unpolled
        if sleep is None or distance is None or distance >= sleep:
            return Jump(distance or 0)
        self._sleep = sleep
        self._quiet.set_result(distance)
        return Jump(0)

    def _wait(self) -> Wait:
        """Waits in real time: a handler is in a thread or process, or waits for something else than time."""
        left = self._patience - (time.monotonic() - self._since)
        if left > 0:
            return Wait(left)
        self._quiet.set_exception(
            RopewayError(
                f"{self._worker.running!r} did not end in {self._patience:g} s: drain advances the clock for sleeps, "
                "not for other waits; call `await clock.advance(...)` concurrently to reach a timeout"
            )
        )
        return Wait(0)

    def _started(self, job: Job) -> None:
        self._since = time.monotonic()
        self._names[job.name] += 1
        if self._names.total() > self._max_jobs and not self._quiet.done():
            often = ", ".join(f"{name!r} {count} times" for name, count in self._names.most_common(3))
            self._quiet.set_exception(
                RopewayError(
                    f"the queue does not become empty: after {self._max_jobs} runs there are still more ({often}). "
                    'Do jobs add jobs for ever? Use until="due", or a higher max_jobs'
                )
            )


def _worker(what: Queue | Iterable[Queue] | Worker, handler: Any, options: WorkerOptions) -> Worker:
    if not isinstance(what, Worker):
        return Worker(what, handler, **options)
    if handler is not None or options:
        raise InvalidOption("handler", "and options are those of the worker: give them to it")
    return what


def _clock_of(worker: Worker) -> FakeClock:
    first, *others = [fake_store(queue).time for queue in worker.queues]
    if any(clock is not first for clock in others):
        raise InvalidOption("queues", "of this worker are on stores with different clocks: give them the same one")
    return first
