"""One life of a worker, from its start to its shutdown."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from ..client.queue import Queue
from ..client.workers import WorkerInfo
from ..errors import HandlerError, RopewayError, ShutdownTimeout
from ..job.outcomes import Outcome
from ..store.contract import Store
from ..store.values import DONE
from .attempts import Attempts
from .completing import committed
from .domains import Domain, domains_of, late_ones
from .ends import ENDS
from .exchange import Exchange
from .following import Follower
from .handlers import Handlers
from .job import Job, Signal
from .keeper import keeper_for
from .keeping import Census, Presence, Renewer, Revocations, Ticker
from .loopwatch import LAST_WORDS, LoopWatch
from .options import Rules
from .processes import Processes
from .quarantine import Quarantine
from .reports import Reports
from .requests import StopRequests
from .rescue import Rescue
from .service import Service, Services, insist, log
from .signals import Stoppable
from .slots import Slots
from .threads import Threads

SECOND_WAIT: Final = 2.0
"""Seconds for handlers to stop after the grace period: with its 25 s, within the 30 s that most supervisors give."""
HURRY: Final = 0.2
"""Seconds to wait for handlers when the worker was asked twice to stop."""
LATE_START: Final = 1.0
"""Seconds for which a worker that can serve some of its queues waits for the others before it counts as started."""
LOOK_EVERY: Final = 1.0
"""Seconds after which those who wait from elsewhere see that the worker's loop has stopped."""


class Runtime:
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
        self._queues = queues
        self._handlers = handlers
        self._rules = rules
        self._reports = reports
        self._describe = describe
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._stoppable = stoppable
        self._threads = Threads(worker_id)
        self._processes = Processes()
        self._attempts = Attempts(handlers, self._threads, self._processes, rules, self._overdue)
        self.slots = Slots(rules.concurrency, self._attempts, self._ended)
        quarantine = Quarantine(self.slots, handlers, rules.stalls_in)
        self.exchange = Exchange(
            queues,
            self.slots,
            quarantine,
            worker_id,
            rules.lock,
            handlers.names,
            reports.settled,
            reports.claimed,
        )
        self._siblings: dict[int, Store] = {}
        self._kept_queues: dict[str, Store] = {}
        """Those of the domains that have begun, with the handle of the keeper's thread."""
        rescue = Rescue(self._loop, self.slots, self._attempts, self.exchange, self._kept_queues)
        told = reports.hear_slow_loop, reports.hear_blocked_loop
        self._loop_watch = LoopWatch(self._loop, self._thread, self._attempts.stage, rescue, self, *told)
        self._keeper = keeper_for((queue.store for queue in queues), self._watch, self._leave)
        self._starting: asyncio.Task[None] | None = None
        self._beginning: set[asyncio.Task[None]] = set()
        self._serving = Services([quarantine])
        self._exchanging: asyncio.Task[None] | None = None
        self._followers: list[Follower] = []
        self._following: asyncio.Task[None] | None = None
        self._giving_up: set[asyncio.Task[None]] = set()
        self._fatal: BaseException | None = None
        self._crippled = False
        self.was_cancelled = False

    async def start(self) -> None:
        """Waits for a store that cannot be reached yet; returns without having started if it is stopped meanwhile."""
        self._starting = starting = asyncio.ensure_future(self._start())
        stopped = asyncio.ensure_future(self.stopping.wait())
        try:
            await asyncio.wait([starting, stopped], return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopped.cancel()
        if starting.done():
            starting.result()

    async def _start(self) -> None:
        (await self._keeper.start()).add_done_callback(self._check)
        domains = {asyncio.create_task(self._begin(domain)): domain for domain in domains_of(self._queues)}
        self._beginning = {*domains}
        late = await late_ones(domains, LATE_START)
        for task, domain in domains.items():
            if task in late:
                log.warning("%s does not answer yet: the worker starts without it", domain.name)
                task.add_done_callback(partial(self._check_late, domain))
            else:
                self._serve(domain)
        self.follow()
        self._exchanging = asyncio.create_task(self._serving.run(), name="ropeway-exchange")
        self._exchanging.add_done_callback(self._check)

    async def _begin(self, domain: Domain) -> None:
        """Opens a failure domain, and keeps its queues in order from here on."""
        for queue in domain.queues:
            await self._open(queue)
        for store in [*(queue.store for queue in domain.queues), *domain.stores.values()]:
            if id(store) not in self._siblings:
                self._siblings[id(store)] = store.sibling()
        self._kept_queues |= {queue.name: self._siblings[id(queue.store)] for queue in domain.queues}
        await self._keeper.keep(partial(self._keep, domain))
        names = {queue.name for queue in domain.queues}
        for follower in self._needed_followers():
            if follower.queue in names:
                await follower.begin()

    def _serve(self, domain: Domain) -> None:
        if domain.queues:
            self._serving.add(self.exchange.services(domain.name))

    async def _open(self, queue: Queue) -> None:
        limit = self._rules.max_global_concurrency
        await insist(lambda _: queue.store.open(), f"opening {queue.store.url}")
        if limit is not None:
            await insist(lambda _: queue.set_global_concurrency(limit), "setting the global concurrency")

    def tell(self, what: Callable[[], None]) -> None:
        """Does it on the worker's loop: at once if this is its thread, soon if it is another."""
        if threading.get_ident() == self._thread:
            what()
        else:
            with suppress(RuntimeError):  # The loop may just have ended, and the worker with it.
                self._loop.call_soon_threadsafe(what)

    def follow(self) -> None:
        """From here on listeners hear what happens in the queues."""
        if self._following is None and not self.stopping.is_set() and self._needed_followers():
            self._following = asyncio.create_task(Services(self._followers).run(), name="ropeway-followers")
            self._following.add_done_callback(self._check_helper)

    def _needed_followers(self) -> list[Follower]:
        """None if nobody listens: to read all events of a queue is work."""
        if not self._followers and self._reports.hears_queues:
            self._followers = [Follower(queue.store, queue.name, self._reports.happened) for queue in self._queues]
        return self._followers

    def resize(self, concurrency: int) -> None:
        self.slots.size = concurrency
        self.slots.shed(concurrency)
        self.exchange.slots_changed()

    def pause(self, paused: bool) -> None:
        if not self.stopping.is_set():
            self.exchange.claiming = not paused
            if paused:
                self.slots.shed(0)
            self.exchange.slots_changed()

    async def idle(self) -> None:
        """From any loop. Returns too when the worker ends."""
        if asyncio.get_running_loop() is not self._loop:
            await self._idle_there()
        elif self._exchanging is not None:
            idle = asyncio.ensure_future(self.exchange.idle())
            try:
                await asyncio.wait([idle, self._exchanging], return_when=asyncio.FIRST_COMPLETED)
            finally:
                idle.cancel()

    async def _idle_there(self) -> None:
        """On the worker's loop. One that does not run, or whose tasks were all cancelled, runs no jobs either."""
        there = self.idle()
        try:
            waiting = asyncio.run_coroutine_threadsafe(there, self._loop)
        except RuntimeError:
            there.close()
            return
        here = asyncio.wrap_future(waiting)
        try:
            while not here.done() and self._loop.is_running():
                await asyncio.wait([here], timeout=LOOK_EVERY)
        finally:
            here.cancel()
        if not here.cancelled():
            here.result()

    def stop(self) -> None:
        self.exchange.leave()
        if self.stopping.is_set():
            self.hurried.set()
        self.stopping.set()

    async def shut_down(self) -> None:
        """Stop claiming; wait while renewing; signal; wait again; hand back; settle; close; and raise only then."""
        asked = self._loop.time()
        if not self.requests.are_there:
            self.requests.note_call()
        self.exchange.leave()
        self.stopping.set()
        for beginning in [self._starting, *self._beginning]:
            if beginning is not None:
                await _cancel(beginning)
        if self.slots.held:
            number = len(self.slots.held)
            still = "1 job still runs and has" if number == 1 else f"{number} jobs still run and have"
            log.info("stopping: %s %.0f s; Ctrl-C again hands them back now", still, self._rules.grace)
        try:
            # Without its services a worker can neither keep locks nor settle outcomes: no reason to wait.
            await self._wait_for_handlers(0 if self._crippled else self._rules.grace)
            stubborn = await self._stop_handlers()
            await self._settle_the_rest()
        finally:
            await self._close()
        if self._fatal is not None:
            raise self._fatal
        if stubborn:
            raise ShutdownTimeout(self._loop.time() - asked, [job.id for job in stubborn])

    async def _close(self) -> None:
        try:
            if self._exchanging is not None:
                await _cancel(self._exchanging)
            await self._stop_following()
            if self.exchange.unsettled:
                log.error("%d outcomes could not be settled: their jobs will run again", len(self.exchange.unsettled))
        finally:
            self._reports.close()
            # Whatever happened: it would renew the locks of jobs that nobody runs.
            await self._keeper.stop()
            if self._stoppable is not None:
                self._stoppable.is_done = True
            self.slots.close()
            self._threads.close()
            await self._processes.close()

    async def _stop_following(self) -> None:
        if self._following is not None:
            await _cancel(self._following)
            if not self.hurried.is_set():
                await self._catch_up()
        for follower in self._followers:
            follower.close()

    async def _catch_up(self) -> None:
        """Of what this worker did last, such as to empty its queue, its listeners may not have heard yet."""
        try:
            async with asyncio.timeout(LAST_WORDS):
                await asyncio.gather(*(follower.catch_up() for follower in self._followers))
        except Exception as error:  # noqa: BLE001 - nothing that is said last may keep a worker from its end
            log.warning("listeners may not have heard the last events: %s", str(error) or type(error).__name__)

    async def _stop_handlers(self) -> list[Job]:
        """The handlers that did not stop; their jobs are handed back all the same."""
        for job in list(self.slots.held):
            self.slots.signal(job, "shutdown")
        await self._wait_for_handlers(min(self._rules.cancel_grace, SECOND_WAIT))
        stubborn = list(self.slots.held)
        for job in stubborn:
            self.slots.abandon(job, Outcome(job.id, job.token, "hand back"))
        return stubborn

    async def _wait_for_handlers(self, seconds: float) -> None:
        if not self.slots.held:
            return
        if self.hurried.is_set():
            seconds = min(seconds, HURRY)
        waits: list[asyncio.Future[Any]] = [asyncio.ensure_future(self.slots.empty())]
        if not self.hurried.is_set():
            waits.append(asyncio.ensure_future(self.hurried.wait()))
        try:
            await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    async def _settle_the_rest(self) -> None:
        """Outcomes are waited for as long as the grace lasts, and their locks: afterwards they would be refused.

        A claim on its way may bring jobs, which are to be handed back.
        """
        if self._exchanging is None or self._exchanging.done():
            return
        rest = SECOND_WAIT
        if self.exchange.unsettled:
            rest = min(self._rules.lock / 1000, (self.ends_at() or 0) - time.monotonic())
        settled = asyncio.ensure_future(self.exchange.settle_all())
        hurried = asyncio.ensure_future(self.hurried.wait())
        try:
            for waits, seconds in (
                ([settled, self._exchanging, hurried], max(rest, LAST_WORDS)),
                ([settled, self._exchanging], LAST_WORDS),
            ):
                await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
                if not self.hurried.is_set():
                    break
        finally:
            settled.cancel()
            hurried.cancel()

    async def _watch(self) -> list[Service]:
        return [self._loop_watch]

    async def _keep(self, domain: Domain) -> list[Service]:
        held, reports = self.slots.held, self._reports
        services: list[Service] = []
        for queue in domain.queues:
            store, name, rules = self._siblings[id(queue.store)], queue.name, self._rules
            stalls = replace(rules.stalls_in(queue), ends=ENDS)
            revocations = Revocations(store, name, held, self._tell)
            await revocations.begin()
            services += [
                Renewer(store, name, self._locked, rules.lock, self._tell),
                Ticker(store, name, stalls, rules.stalled_interval, reports.hear_ticked),
                revocations,
                Census(store, name, self._handlers.names, reports.hear_unhandled),
            ]
        for handle in domain.stores:
            presence = Presence(self._siblings[handle], self._describe)
            await presence.begin()
            services.append(presence)
        return services

    def ends_at(self) -> float | None:
        """When its shutdown should be over, if the loop answers; for the keeper's thread, as `end_without_loop` is."""
        return self.requests.ends_at(self._rules.grace + min(self._rules.cancel_grace, SECOND_WAIT), 2 * HURRY)

    async def end_without_loop(self) -> None:
        if self._stoppable is not None:
            await self._say_goodbye()
            self._stoppable.give_up()

    def _locked(self) -> list[Job]:
        """The jobs whose locks are to be kept. While the loop is blocked nobody ends those whose time is up."""
        # list() holds the interpreter's lock while it copies: the loop's thread changes them at any time.
        jobs = [*list(self.slots.held), *list(self.exchange.unsettled)]
        if not self._loop_watch.is_blocked:
            return jobs
        now = time.monotonic()
        return [job for job in jobs if self._attempts.deadlines.get(job, now) >= now]

    async def _leave(self) -> None:
        await self._say_goodbye()
        for store in self._siblings.values():
            with suppress(TimeoutError):
                async with asyncio.timeout(LAST_WORDS):
                    await store.close()

    async def _say_goodbye(self) -> None:
        """Its records lapse by themselves if nobody can be told now."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_WORDS):
                leaving = (Presence(store, self._describe).leave() for store in self._siblings.values())
                await asyncio.gather(*leaving, return_exceptions=True)

    def _ended(self, job: Job, outcome: Outcome | None) -> None:
        if (done := committed(job)) is not None:
            self._reports.settled(job, done, DONE)
            self.exchange.slots_changed()
        elif outcome is None:
            self._reports.dropped(job)
            self.exchange.slots_changed()
        else:
            self.exchange.ended(job, outcome)

    def _tell(self, job: Job, signal: Signal) -> None:
        """From the keeper's thread. A handler in a thread sees it at once, a coroutine when the loop comes round."""
        if job.threaded and job.signal is None:
            job.signal = signal
        self._loop.call_soon_threadsafe(self._signal, job, signal)

    def _signal(self, job: Job, signal: Signal) -> None:
        if not job.ended:
            self.slots.signal(job, signal)
            self._loop.call_later(self._rules.cancel_grace, self._check_stopped, job)

    def _overdue(self, job: Job) -> None:
        self._signal(job, "timeout")

    def _check_stopped(self, job: Job) -> None:
        if not job.ended and not self.stopping.is_set():
            task = asyncio.ensure_future(self._give_up(job))
            self._giving_up.add(task)
            task.add_done_callback(self._giving_up.discard)

    async def _give_up(self, job: Job) -> None:
        """The handler ignored its end: its job is settled without it, and its slot is filled anew."""
        outcome = None
        if job.signal == "timeout":
            outcome = await self._attempts.outcome_of(job, self._attempts.overtime(job))
        if not self.slots.abandon(job, outcome):
            return
        leaked = self.slots.leaked
        self._reports.leaked(job, leaked)
        if self._rules.max_leaked is not None and leaked >= self._rules.max_leaked:
            self._die(HandlerError(f"{leaked} handlers do not stop: start this worker's process anew"))

    def _check(self, end: asyncio.Future[None]) -> None:
        if (error := self._error_of(end)) is not None:
            self._crippled = True
            self._die(error)

    def _check_late(self, domain: Domain, begun: asyncio.Future[None]) -> None:
        if begun.cancelled() or begun.exception() is not None:
            self._check_helper(begun)
        elif not self.stopping.is_set():
            log.info("%s answers now", domain.name)
            self._serve(domain)

    def _check_helper(self, end: asyncio.Future[None]) -> None:
        if (error := self._error_of(end)) is not None:
            self._die(error)

    def _error_of(self, end: asyncio.Future[None]) -> BaseException | None:
        if not end.cancelled():
            return end.exception()
        if self.stopping.is_set():
            return None
        # By others: a handler, say, that cancels every task of its loop.
        self.was_cancelled = True
        return RopewayError("somebody cancelled tasks of this worker's own: it can neither claim nor settle jobs")

    def _die(self, error: BaseException) -> None:
        log.error("the worker cannot go on: %s", error)
        self._fatal = self._fatal or error
        self.stop()


async def _cancel(task: asyncio.Task[None]) -> None:
    """Returns when it has ended."""
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled() and (error := task.exception()) is not None:
        # Whoever was to be told has been.
        log.debug("%s ended with %r", task.get_name(), error)
