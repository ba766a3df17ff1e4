"""One life of a worker, from its start to its shutdown."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final

from msgspec.structs import replace

from ..client.queue import Queue
from ..client.workers import Order, WorkerInfo
from ..errors import HandlerError, RopewayError, ShutdownTimeout, StoreUnavailable
from ..job.outcomes import Outcome
from ..store.contract import Store
from ..store.values import DONE
from .attempts import Attempts
from .companion_starter import CompanionStarter
from .dispatcher import Dispatcher
from .domains import Domain, domains_of, late_ones
from .following import Following
from .handlers import Handlers
from .job import Interruption, Job
from .maintenance.census import Census
from .maintenance.loop_watch import FINAL_CALL_TIMEOUT, LoopWatch
from .maintenance.presence import Presence
from .maintenance.renewer import Renewer
from .maintenance.rescue import Rescue
from .maintenance.revocations import Revocations
from .maintenance.thread import maintenance_for
from .maintenance.ticker import Ticker
from .maintenance.timekeeper import Timekeeper
from .observations import Observations
from .options import Rules
from .process_exits import PROCESS_EXITS
from .processes import Processes
from .quarantine import Quarantine
from .reports import Reports
from .retiring import callbacks_of
from .service import Service, Services, cancelled, log, until_answered
from .shutdown import HURRY, Shutdown
from .signals import Stoppable
from .slots import Slots
from .stop_requests import StopRequests
from .threads import Threads

LATE_START: Final = 1.0
"""Seconds that a worker waits for its remaining failure domains, once it can serve some of its queues."""
LOOK_EVERY: Final = 1.0
"""Seconds between checks, by callers on other loops, that the worker's loop still runs."""


class Runtime:
    """Starts, connects and stops the parts of a running worker. Lives on the application's loop.

    Dispatcher  <->  Slots -> Attempts -> handlers        on the application's loop
    MaintenanceThread: Renewer, Ticker, ...               in a dedicated thread
    """

    def __init__(
        self,
        queues: list[Queue],
        handlers: Handlers,
        rules: Rules,
        worker_id: str,
        reports: Reports,
        describe: Callable[[], WorkerInfo],
        requests: StopRequests,
        stoppable: Stoppable | None,
    ) -> None:
        self.requests = requests
        self.stopping = asyncio.Event()
        self.hurried = asyncio.Event()
        self.grace = rules.grace
        """Seconds that a shutdown waits for handlers."""
        self._queues = queues
        self._handlers = handlers
        self._rules = rules
        self._reports = reports
        self._describe = describe
        self.obey: Callable[[Order], None] = lambda _: None
        """Carries out what others order, from the maintenance thread."""
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._stoppable = stoppable
        self._threads = Threads(worker_id)
        self._processes = Processes(rules.max_process_jobs, rules.max_process_memory)
        self._attempts = Attempts(handlers, self._threads, self._processes, rules, self._interrupt, self._check_stopped)
        self._observations = Observations()
        self.slots = Slots(rules.concurrency, self._attempts, self._ended, self._observations.ran)
        quarantine = Quarantine(self.slots, handlers, rules.stalls_in)
        self.dispatcher = Dispatcher(
            queues,
            self.slots,
            quarantine,
            worker_id,
            rules.lock,
            handlers.names,
            reports.settled_all,
            self._claimed,
        )
        self._shutdown = Shutdown(self.slots, self.dispatcher, rules, self.hurried, self.ends_at)
        self._siblings: dict[int, Store] = {}
        self._maintenance_stores: dict[str, Store] = {}
        """The maintenance thread's store handle for each queue that has been opened."""
        rescue = Rescue(self._loop, self.slots, self._attempts, self.dispatcher, self._maintenance_stores)
        reporting = reports.on_slow_loop, reports.on_blocked_loop
        self._loop_watch = LoopWatch(self._loop, self._thread, self._attempts.current, rescue, self, *reporting)
        self._maintenance = maintenance_for((queue.store for queue in queues), self._watch, self._close_maintenance)
        self._starting: asyncio.Task[None] | None = None
        self._beginning: set[asyncio.Task[None]] = set()
        self._serving = Services([quarantine])
        self._dispatching: asyncio.Task[None] | None = None
        self._following = Following(queues, reports, self._check_helper)
        self._giving_up: set[asyncio.Task[None]] = set()
        self.companions = CompanionStarter(rules, describe)
        self._fatal: BaseException | None = None
        self._services_failed = False
        self.was_cancelled = False
        self._draining: asyncio.Task[None] | None = None
        self.was_drained = False

    async def start(self) -> None:
        """Starts all parts, waiting for stores that cannot be reached yet; returns early if it is stopped meanwhile."""
        self._starting = starting = asyncio.ensure_future(self._start())
        stopped = asyncio.ensure_future(self.stopping.wait())
        try:
            await asyncio.wait([starting, stopped], return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopped.cancel()
        if starting.done():
            starting.result()

    async def _start(self) -> None:
        (await until_answered(self._start_maintenance, "starting")).add_done_callback(self._check)
        domains = {asyncio.create_task(self._begin(domain)): domain for domain in domains_of(self._queues)}
        self._beginning |= {*domains}
        late = await late_ones(domains, LATE_START)
        for task, domain in domains.items():
            if task in late:
                log.warning("%s does not answer yet: the worker starts without it", domain.name)
                task.add_done_callback(partial(self._check_late, domain))
            else:
                self._serve(domain)
        self.follow()
        self._dispatching = asyncio.create_task(self._serving.run(), name="ropeway-dispatcher")
        self._dispatching.add_done_callback(self._check)

    async def _start_maintenance(self, _: bool) -> asyncio.Future[None]:
        try:
            return await self._maintenance.start()
        except OSError as error:
            # Its loop needs files, and others may close some of theirs.
            raise StoreUnavailable(self._queues[0].store.url, str(error)) from error

    async def _begin(self, domain: Domain) -> None:
        """Opens the stores of a failure domain, and starts its maintenance services."""
        for queue in domain.queues:
            await self._open(queue)
        for store in [*(queue.store for queue in domain.queues), *domain.stores.values()]:
            if id(store) not in self._siblings:
                self._siblings[id(store)] = store.sibling()
        self._maintenance_stores |= {queue.name: self._siblings[id(queue.store)] for queue in domain.queues}
        await self._maintenance.add_services(partial(self._maintain, domain))
        self.companions.begin(domain)
        names = {queue.name for queue in domain.queues}
        for follower in self._following.followers:
            if follower.queue in names:
                await follower.begin()

    def _serve(self, domain: Domain) -> None:
        if domain.queues:
            self._serving.add(self.dispatcher.services(domain.name))

    def _claimed(self, jobs: list[Job]) -> None:
        self.companions.claimed(jobs)
        self._reports.claimed(jobs)
        if jobs:
            self._observations.claimed(jobs[0].queue.name, [job.record for job in jobs])

    async def _open(self, queue: Queue) -> None:
        limit = self._rules.max_global_concurrency
        await until_answered(lambda _: queue.store.open(), f"opening {queue.store.url}")
        if limit is not None:
            await until_answered(lambda _: queue.set_global_concurrency(limit), "setting the global concurrency")
        if callbacks := tuple(callbacks_of(self._rules)):
            await until_answered(
                lambda _: queue.store.configure_stages(queue.name, callbacks=callbacks), "storing who has callbacks"
            )
        await until_answered(lambda _: queue.schedules.declare(), "storing schedules")
        await until_answered(lambda _: queue.webhook_settings.write(), "storing the settings of webhooks")

    def run_on_loop(self, action: Callable[[], None]) -> None:
        """Runs it on the worker's loop: at once if this is the loop's thread, else soon."""
        if threading.get_ident() == self._thread:
            action()
        else:
            with suppress(RuntimeError):  # The loop may just have ended, and the worker with it.
                self._loop.call_soon_threadsafe(action)

    def follow(self) -> None:
        """Starts reading the queues' events for the worker's listeners, if there are any."""
        if not self.stopping.is_set():
            self._following.start()

    def resize(self, concurrency: int) -> None:
        self.slots.size = concurrency
        self.slots.shed(concurrency)
        self.dispatcher.slots_changed()

    def pause(self, paused: bool, drain: bool = False) -> None:
        """Claims or not; with `drain` it also stops once its jobs have ended, unless it is resumed before."""
        if self.stopping.is_set():
            return
        self.dispatcher.claiming = not paused
        if paused:
            self.slots.shed(0)
        self.dispatcher.slots_changed()
        if self._draining is not None:
            self._draining.cancel()
        self._draining = asyncio.create_task(self._drain(), name="ropeway-drain") if drain else None

    async def _drain(self) -> None:
        await self.idle()
        self.was_drained = True
        self.stop()

    async def idle(self) -> None:
        """Waits until the worker is idle or has ended. From any loop."""
        if asyncio.get_running_loop() is not self._loop:
            await self._idle_from_other_loop()
        elif self._dispatching is not None:
            idle = asyncio.ensure_future(self.dispatcher.idle())
            try:
                await asyncio.wait([idle, self._dispatching], return_when=asyncio.FIRST_COMPLETED)
            finally:
                idle.cancel()

    async def _idle_from_other_loop(self) -> None:
        """Runs `idle` on the worker's loop. If that loop has stopped, or its tasks were cancelled, no job runs."""
        idle = self.idle()
        try:
            on_loop = asyncio.run_coroutine_threadsafe(idle, self._loop)
        except RuntimeError:
            idle.close()
            return
        waiting = asyncio.wrap_future(on_loop)
        try:
            while not waiting.done() and self._loop.is_running():
                await asyncio.wait([waiting], timeout=LOOK_EVERY)
        finally:
            waiting.cancel()
        if not waiting.cancelled():
            waiting.result()

    def stop(self) -> None:
        self.dispatcher.stop_claiming()
        if self.stopping.is_set():
            self.hurried.set()
        self.stopping.set()

    async def shut_down(self) -> None:
        """Shuts down in this order, and raises only at the end.

        Stop claiming and ticking; wait for handlers while locks are renewed; interrupt them; wait again; hand back the
        rest; settle all outcomes; end companions; close.
        """
        asked = self._loop.time()
        if not self.requests.are_there:
            self.requests.note("call")
        self.dispatcher.stop_claiming()
        self.stopping.set()
        for beginning in [self._starting, *self._beginning]:
            if beginning is not None:
                await cancelled(beginning)
        await self.companions.stop()
        if self.slots.held:
            number = len(self.slots.held)
            still = "1 job still runs and has" if number == 1 else f"{number} jobs still run and have"
            log.info("stopping: %s %.0f s; Ctrl-C again hands them back now", still, self.grace)
        try:
            # Without its services a worker can neither renew locks nor settle outcomes: waiting is pointless.
            await self._shutdown.wait_for_handlers(0 if self._services_failed else self.grace)
            stubborn = await self._shutdown.stop_handlers()
            await self._shutdown.settle_the_rest(self._dispatching)
        finally:
            left = (self.ends_at() or 0) - time.monotonic()
            await self.companions.end(0 if self._services_failed else left, self.hurried)
            await self._close()
        if self._fatal is not None:
            raise self._fatal
        if stubborn:
            raise ShutdownTimeout(self._loop.time() - asked, [job.id for job in stubborn])

    async def _close(self) -> None:
        try:
            for task in (self._draining, self._dispatching):
                if task is not None:
                    await cancelled(task)
            await self._following.stop(catches_up=not self.hurried.is_set())
            if self.dispatcher.unsettled:
                log.error("%d outcomes could not be settled: their jobs will run again", len(self.dispatcher.unsettled))
        finally:
            self._reports.close()
            # In any case: it would go on renewing the locks of jobs that nobody runs.
            await self._maintenance.stop()
            if self._stoppable is not None:
                self._stoppable.is_done = True
            self.slots.close()
            self._threads.close()
            await self._processes.close()

    async def _watch(self) -> list[Service]:
        return [self._loop_watch]

    async def _maintain(self, domain: Domain) -> list[Service]:
        held, reports = self.slots.held, self._reports
        services: list[Service] = []
        for queue in domain.queues:
            store, name, rules = self._siblings[id(queue.store)], queue.name, self._rules
            stalls = replace(rules.stalls_in(queue), ends=PROCESS_EXITS)
            revocations = Revocations(store, name, held, self._interrupt_soon)
            await revocations.begin()
            services += [
                Renewer(store, name, self._locked, rules.lock, self._interrupt_soon),
                Ticker(store, name, stalls, rules.stalled_interval, reports.on_ticked, self.stopping.is_set),
                revocations,
                Census(store, name, self._handlers.names, reports.on_unhandled),
                Timekeeper(store, name, self._observations),
            ]
        for handle in domain.stores:
            presence = Presence(self._siblings[handle], self._describe, self.obey)
            await presence.begin()
            services.append(presence)
        return services

    def ends_at(self) -> float | None:
        """Deadline of a shutdown. This and `end_without_loop` are called from the maintenance thread."""
        if self._stoppable is not None:
            self._stoppable.read_signals()
        return self.requests.ends_at(self.grace + self._shutdown.second_wait, 2 * HURRY)

    async def end_without_loop(self) -> None:
        if self._stoppable is not None:
            await self._final_calls()
            self._stoppable.give_up()

    def _locked(self) -> list[Job]:
        """The jobs whose locks to renew. While the loop is blocked, not those past their timeout: nothing ends them."""
        # list() holds the interpreter's lock while it copies: the loop's thread changes them at any time.
        jobs = [*list(self.slots.held), *list(self.dispatcher.unsettled)]
        if not self._loop_watch.is_blocked:
            return jobs
        now = time.monotonic()
        return [job for job in jobs if self._attempts.deadlines.get(job, now) >= now]

    async def _close_maintenance(self) -> None:
        await self._final_calls()
        for store in self._siblings.values():
            with suppress(TimeoutError):
                async with asyncio.timeout(FINAL_CALL_TIMEOUT):
                    await store.close()

    async def _final_calls(self) -> None:
        """Writes the last timings, and removes the worker's records; these expire if a store cannot be reached now."""
        with suppress(TimeoutError):
            async with asyncio.timeout(FINAL_CALL_TIMEOUT):
                queues = self._maintenance_stores.items()
                writing = (Timekeeper(store, name, self._observations).write() for name, store in queues)
                withdrawing = (Presence(store, self._describe).withdraw() for store in self._siblings.values())
                await asyncio.gather(*writing, *withdrawing, return_exceptions=True)

    def _ended(self, job: Job, outcome: Outcome | None) -> None:
        completion = job.completion
        if completion is not None and completion.outcome is not None:
            self._reports.settled(job, completion.outcome, DONE)
            self.dispatcher.slots_changed()
        elif outcome is None:
            self._reports.dropped(job)
            self.dispatcher.slots_changed()
        else:
            self.dispatcher.job_ended(job, outcome)

    def _interrupt_soon(self, job: Job, why: Interruption) -> None:
        """From the maintenance thread. A handler in a thread sees it at once, a coroutine when the loop runs."""
        if job.threaded and job.interruption is None:
            job.interruption = why
        self._loop.call_soon_threadsafe(self._interrupt, job, why)

    def _interrupt(self, job: Job, why: Interruption) -> None:
        if not job.ended:
            self.slots.interrupt(job, why)
            self._loop.call_later(self._rules.cancel_grace, self._check_stopped, job)

    def _check_stopped(self, job: Job) -> None:
        if not job.ended and not self.stopping.is_set():
            task = asyncio.ensure_future(self._give_up(job))
            self._giving_up.add(task)
            task.add_done_callback(self._giving_up.discard)

    async def _give_up(self, job: Job) -> None:
        """Settles the job of a handler that ignored its interruption, and replaces its slot."""
        outcome = None
        if job.interruption == "timeout":
            outcomes = self._attempts.outcomes
            outcome = await outcomes.of_error(job, outcomes.overtime(job))
        if not self.slots.abandon(job, outcome):
            return
        leaked = self.slots.leaked
        self._reports.leaked(job, leaked)
        if self._rules.max_leaked is not None and leaked >= self._rules.max_leaked:
            self._fail(HandlerError(f"{leaked} handlers do not stop: restart this worker's process"))

    def _check(self, end: asyncio.Future[None]) -> None:
        if (error := self._error_of(end)) is not None:
            self._services_failed = True
            self._fail(error)

    def _check_late(self, domain: Domain, begun: asyncio.Future[None]) -> None:
        if begun.cancelled() or begun.exception() is not None:
            self._check_helper(begun)
        elif not self.stopping.is_set():
            log.info("%s answers now", domain.name)
            self._serve(domain)

    def _check_helper(self, end: asyncio.Future[None]) -> None:
        if (error := self._error_of(end)) is not None:
            self._fail(error)

    def _error_of(self, end: asyncio.Future[None]) -> BaseException | None:
        if not end.cancelled():
            return end.exception()
        if self.stopping.is_set():
            return None
        # By other code, such as a handler that cancels every task of its loop.
        self.was_cancelled = True
        return RopewayError("other code cancelled this worker's internal tasks: it can neither claim nor settle jobs")

    def _fail(self, error: BaseException) -> None:
        if str(error) != str(self._fatal):  # what ends one internal task often ends several, in the same words
            log.error("the worker cannot go on: %s", error)
        self._fatal = self._fatal or error
        self.stop()
