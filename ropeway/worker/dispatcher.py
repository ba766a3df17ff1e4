"""The dispatcher: settles ended jobs and claims the next ones, in one round trip to the store.

    Slots -- outcome --> QueueFeed.ended --+
                                           |  settle(outcomes, then=claim)      one call: a round trip
    Slots <-- jobs ------------------------+------------------------------> store
                                           |  update(changes)                   beside it, if there are any
    Slots -- update of a --> .updates -----+
             parked attempt

There are no timers: what arrives while a trip is in flight waits for the next one. A queue whose claim came back
short is dry (`feeds.py`); it is not asked again before the store announces new jobs, or a safety poll.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from operator import attrgetter
from typing import Final

from msgspec.structs import replace

from ..client.queue import Queue
from ..client.updates import Waiter, Waiting, carry
from ..errors import StoreError
from ..job.ids import new_token
from ..job.instants import Milliseconds
from ..job.outcomes import Outcome
from ..job.record import JobRecord
from ..store.commands import Claim
from ..store.contract import Listener, Store
from ..store.values import DONE, Answer, Claimed, JobUpdate, Settled
from .feeds import DomainFeeds, QueueFeed, by_domain
from .job import Job
from .quarantine import Quarantine
from .service import Service, until_answered
from .slots import Slots
from .turns import TRIPS_AT_ONCE, Reservation, Turns

SAFETY_POLL: Final = 5.0
_stalled_count: Final = attrgetter("stalled_count")
LATE: Final = 0.5
"""Seconds after which an unanswered claim gives up its reserved slots to other domains."""


class Dispatcher:
    """Keeps the worker's slots full, and records how each attempt ended.

    Outcomes gather while trips are in flight, and the next trip carries them all; a single outcome is sent at once.
    If the store runs two calls in parallel, a large batch is divided between two trips. The jobs of each half then go
    on together: those of a pipeline update, settle and are replaced as one batch.
    """

    def __init__(
        self,
        queues: Sequence[Queue],
        slots: Slots,
        quarantine: Quarantine,
        worker: str,
        lock: Milliseconds,
        names: Callable[[str], tuple[str, ...] | None],
        settled: Callable[[list[tuple[Job, Outcome]], list[Answer]], None],
        claimed: Callable[[list[Job]], None],
    ) -> None:
        self.feeds = [QueueFeed(queue, self._on_wake) for queue in queues]
        self.claiming = True
        """If false, it claims no more, and hands back what a claim in flight still brings."""
        self.is_stopping = False
        """If true, a claim whose answer was lost is not repeated."""
        self.unsettled: dict[Job, Outcome] = {}
        """Jobs whose outcome is not stored yet: their locks must be renewed until it is."""
        self.returned: dict[str, set[tuple[str, int]]] = {}
        """By the token of a claim that `take_claims` gave away: the handed-back jobs, each with its `attempts_started`.

        If the claim reached the store later, it took jobs again, perhaps the same ones: that is another start.
        """
        self._claims: dict[str, Claim] = {}
        """Claims in flight, by token."""
        self._by_queue = {feed.queue.name: feed for feed in self.feeds}
        self._by_domain = by_domain(self.feeds)
        self._loop = asyncio.get_running_loop()
        self._slots = slots
        self._quarantine = quarantine
        self._worker = worker
        self._lock = lock
        self._names = names
        self._settled = settled
        self._claimed = claimed
        self._turns = Turns(slots)
        self._state_changed = asyncio.Event()
        self._state_changed.set()
        self._under_way = 0
        self._waiting_claim: Claim | None = None
        self._withdrawal: asyncio.Task[None] | None = None
        """Ends the wait of `_waiting_claim`."""
        self._waiting_listener: Listener | None = None
        slots.on_emptied = self._on_idle
        slots.enqueue_update = self.enqueue_update
        quarantine.unsettled = self.unsettled
        quarantine.changed = self.slots_changed

    def services(self, domain: str) -> list[Service]:
        """The services for the queues of one failure domain."""
        feeds = self._by_domain[domain]
        return [
            *(RoundTrips(self, feeds) for _ in range(TRIPS_AT_ONCE)),
            *(FeedWaker(self, feed) for feed in feeds.all),
        ]

    def listen(self, feed: QueueFeed) -> Listener:
        """The listener by which this worker waits for jobs of a feed."""
        return feed.queue.store.listen("jobs", [feed.queue.name], self._worker)

    def job_ended(self, job: Job, outcome: Outcome) -> None:
        domain = self.enqueue_outcome(job, outcome).domain
        if domain.has_others:
            # One that waits for the slot goes first: this one would take it with the trip that settles the outcome.
            self._turns.wake_next()
        domain.wake_up.set()

    def enqueue_update(self, queue: Queue, change: JobUpdate, waiter: Waiter) -> None:
        """Sends an update of a parked attempt with the next trip."""
        feed = self._by_queue[queue.name]
        feed.updates.append(change, waiter)
        feed.domain.wake_up.set()

    def enqueue_outcome(self, job: Job, outcome: Outcome) -> QueueFeed:
        """Puts the outcome where the next trip finds it, and returns that feed. From any thread."""
        self.unsettled[job] = outcome
        feed = self._by_queue[job.queue.name]
        feed.ended.append((job, outcome))
        return feed

    def note_answers(self, ended: list[tuple[Job, Outcome]], answers: list[Answer]) -> None:
        """Records the answers to outcomes that another thread settled."""
        self._settle(ended, answers)
        self._state_changed.set()
        self.slots_changed()

    @property
    def has_claims(self) -> bool:
        """True if claims are in flight, waiting ones included."""
        return bool(self._claims)

    def take_claims(self) -> list[Claim]:
        """Takes over the claims in flight, from any thread: the dispatcher does not run the jobs of their answers."""
        taken = (self._claims.pop(token, None) for token in list(self._claims))
        return [claim for claim in taken if claim is not None]

    def stop_claiming(self) -> None:
        self.claiming = False
        self.is_stopping = True
        self._quarantine.hand_back_waiting()
        self.slots_changed()

    def slots_changed(self) -> None:
        """The number of jobs to claim may have changed."""
        for feed in self.feeds:
            self._on_wake(feed)

    def wake_all(self) -> None:
        """Makes every queue worth a claim, because a new handler may take jobs that were passed over."""
        for feed in self.feeds:
            feed.wake()

    async def settle_all(self) -> None:
        """Returns when every outcome is settled."""
        while self._under_way or any(feed.ended for feed in self.feeds):
            self._state_changed.clear()
            await self._state_changed.wait()

    async def idle(self) -> None:
        """Returns when no job is held or unsettled, and, if it is not claiming, no claim in flight can bring one."""
        while self._slots.held or self.unsettled or (self._under_way and not self.claiming):
            self._state_changed.clear()
            await self._state_changed.wait()

    async def trip(self, feeds: DomainFeeds) -> None:
        """Waits until there is something to store or claim in one of the feeds, then makes one round trip."""
        while (plan := self._plan(feeds)) is None:
            self._state_changed.set()
            self._turns.pass_on()
            feeds.wake_up.clear()
            await feeds.wake_up.wait()
        feed, wanted = plan
        outcomes, changes = len(feed.ended), len(feed.updates)
        if not feeds.under_way and self._divides(feed, outcomes, changes):
            # The next trip takes the other half: the store works on one while the jobs of the other run.
            wanted -= wanted // 2
            outcomes -= outcomes // 2
            changes -= changes // 2
        ended = feed.take_ended(outcomes)
        updates = feed.updates.take(changes) if changes else []
        if not ended and not wanted and not updates:
            return  # Settled by another thread meanwhile.
        reservation = Reservation(self._slots, wanted)
        late = self._loop.call_later(LATE, self._turns.lapse, reservation) if wanted and feeds.has_others else None
        self._turns.pass_on()
        feeds.reserved += wanted
        feeds.under_way += 1
        self._under_way += 1
        try:
            if not updates:
                await self._call_store(feed, ended, reservation)
            elif ended or wanted:
                await _all(_carry(feed, updates), self._call_store(feed, ended, reservation))
            else:
                await _carry(feed, updates)
        except BaseException:
            # Not settled: the next trip must find them.
            feed.ended.extendleft(reversed(ended))
            raise
        finally:
            feeds.reserved -= wanted
            feeds.under_way -= 1
            self._under_way -= 1
            self._state_changed.set()
            self._turns.end(reservation)
            if late is not None:
                late.cancel()

    async def wait(self, feed: QueueFeed, listener: Listener) -> None:
        """Waits until a dry feed is worth a claim.

        An idle worker of one queue lets the claim itself wait: the store may then deliver jobs as they are added.
        """
        if not feed.dry.is_set():
            # It was woken again before this ran.
            return
        timeout = SAFETY_POLL * random.uniform(0.8, 1.2)  # noqa: S311 - spreads load
        wanted = self._quarantine.limit(self._slots.free) if self.claiming else 0
        if wanted <= 0 or len(self.feeds) > 1:
            # With several queues, slots reserved by the claim of one would be missing to the others.
            await listener.wait(timeout)
            feed.wake()
            return
        if self._slots.held:
            # If a handler blocked the loop, jobs delivered meanwhile would be kept from other workers.
            self._waiting_listener = listener
            try:
                is_woken = await listener.wait(timeout)
            finally:
                self._waiting_listener = None
            if is_woken or self._slots.held:
                feed.wake()
            return
        await self._wait_with_claim(feed, wanted, timeout)

    async def _wait_with_claim(self, feed: QueueFeed, wanted: int, timeout: float) -> None:
        """Sends a waiting claim, and starts its jobs. Who changes the slots meanwhile withdraws it."""
        # The claim looks for jobs when its wait is over: then the feed need not wake by itself.
        alarm = feed.take_alarm()
        wait = math.ceil(1000 * (timeout if alarm is None else min(alarm, timeout)))
        claim = self._waiting_claim = self._request(feed, wanted, wait)
        self._claims[claim.token] = claim
        self._slots.reserved += wanted
        self._under_way += 1
        started, wakes = time.monotonic(), feed.wakes
        is_answered = False
        try:
            claimed = await self._claim(feed.queue.store, claim)
            is_answered = True
        finally:
            is_taken = self._claims.pop(claim.token, None) is None
            self._waiting_claim = None
            withdrawal, self._withdrawal = self._withdrawal, None
            self._slots.reserved -= wanted
            self._under_way -= 1
            self._state_changed.set()
            feed.domain.wake_up.set()
            if is_taken or withdrawal or not is_answered:
                feed.wake()
        if len(claimed.jobs) == wanted:
            feed.wake()
        self._note_shortfall(feed, wanted, claimed, wakes)
        if is_taken:
            self._hand_back(feed, claim, claimed.jobs)
        elif claimed.jobs:
            self._receive(feed, claimed.jobs, min(started + claimed.waited / 1000, time.monotonic()), wanted)
        if withdrawal is not None:
            await withdrawal
        # Lets the handlers start first.
        await asyncio.sleep(0)

    def _request(self, feed: QueueFeed, wanted: int, wait: Milliseconds = 0) -> Claim:
        queue = feed.queue.name
        return Claim(queue, self._worker, new_token(), wanted, self._lock, self._names(queue), isolates=True, wait=wait)

    async def _claim(self, store: Store, claim: Claim) -> Claimed:
        return await until_answered(
            lambda repeat: store.claim(replace(claim, repeat=repeat)), "claim", unless=lambda: self.is_stopping
        )

    def _note_shortfall(self, feed: QueueFeed, wanted: int, claimed: Claimed, wakes: int) -> None:
        """Marks the feed as dry if the claim got less than it wanted, unless the feed was woken since it was sent."""
        if len(claimed.jobs) < wanted and feed.wakes == wakes:
            feed.run_dry(claimed.again_in)

    def _plan(self, feeds: DomainFeeds) -> tuple[QueueFeed, int] | None:
        """The feed to serve next, and how many jobs to claim from it.

        Only the feed whose turn it is claims, and its outcomes travel with the claim: a feed that always has jobs would
        otherwise take every slot that its own jobs free. The load of another feed yields to such a claim once at most.
        """
        late = next((feed for feed in feeds.all if feed.has_yielded and feed.has_load), None)
        wanted = self._turns.wanted(feeds) if self.claiming and late is None else 0
        wanted = self._quarantine.limit(wanted, feeds.reserved)
        if wanted > 0 and (feed := feeds.next()) is not None:
            return feed, wanted
        loaded = late or next((feed for feed in feeds.all if feed.has_load), None)
        if loaded is None:
            return None
        loaded.has_yielded = False
        return loaded, 0

    def _divides(self, feed: QueueFeed, outcomes: int, changes: int) -> bool:
        """True if this load is worth two trips side by side: it is not small, and most of what the worker holds.

        Otherwise the rest is the other half already, and halves would be divided again and again.
        """
        load, others = outcomes + changes, len(self._slots.held) - changes
        return load >= feed.queue.store.offers.side_by_side_from and load > others

    async def _call_store(self, feed: QueueFeed, ended: list[tuple[Job, Outcome]], reservation: Reservation) -> None:
        queue, wanted = feed.queue, reservation.wanted
        claim = self._request(feed, wanted) if wanted else None
        outcomes = [outcome for _, outcome in ended]
        if claim is not None:
            self._claims[claim.token] = claim
        started, wakes = time.monotonic(), feed.wakes
        repeated = False
        try:
            if outcomes:

                async def settle(repeat: bool) -> Settled:
                    nonlocal repeated
                    repeated = repeat
                    then = replace(claim, repeat=True) if claim and repeat else claim
                    return await queue.store.settle(queue.name, outcomes, then)

                settled = await until_answered(settle, "settle")
                answers, claimed = settled.answers, settled.claimed
            else:
                assert claim is not None
                answers = []
                claimed = await self._claim(queue.store, claim)
        finally:
            is_taken = claim is not None and self._claims.pop(claim.token, None) is None
        reservation.release()
        if claimed is not None and claim is not None:
            self._note_shortfall(feed, wanted, claimed, wakes)
            if is_taken:
                self._hand_back(feed, claim, claimed.jobs)
            elif claimed.jobs:
                # The slots of a late claim may be taken.
                self._receive(feed, claimed.jobs, started, max(0, self._slots.free) if reservation.is_late else wanted)
        if repeated:
            # Missing on a repeat: the first call settled it and retention took it; only the answer was lost.
            answers = [DONE if answer.verdict == "missing" else answer for answer in answers]
        self._settle(ended, answers)
        self._quarantine.check()

    def _settle(self, ended: list[tuple[Job, Outcome]], answers: list[Answer]) -> None:
        forget = self.unsettled.pop
        for job, _ in ended:
            forget(job, None)
        self._settled(ended, answers)

    def _receive(self, feed: QueueFeed, records: list[JobRecord], started: float, room: int) -> None:
        queue = feed.queue
        jobs = [Job(queue, record, started) for record in records]
        room = min(room, self._room(started))
        if len(jobs) > room:
            for job in jobs[room:]:
                self.job_ended(job, Outcome(job.id, job.token, "hand back"))
            if not room:
                return
            jobs = jobs[:room]
        if self._quarantine.is_alert or any(map(_stalled_count, records)):
            self._receive_suspects(jobs)
        else:
            self._claimed(jobs)
            self._slots.start(jobs)

    def _receive_suspects(self, jobs: list[Job]) -> None:
        """As `_receive`, if some of the jobs must run alone, or one does already (`quarantine.py`)."""
        kept, back = self._quarantine.split(jobs)
        for job in back:
            self.job_ended(job, Outcome(job.id, job.token, "hand back"))
        self._claimed(kept)
        self._quarantine.start(kept)

    def _room(self, started: float) -> int:
        """How many claimed jobs may start: the worker may have been paused or resized while the claim was in flight."""
        if not self.claiming:
            return 0
        # The lock may have expired before the answer came.
        is_late = time.monotonic() - started > self._lock / 1000
        return 0 if is_late else max(0, self._slots.size - len(self._slots.held))

    def _hand_back(self, feed: QueueFeed, claim: Claim, records: list[JobRecord]) -> None:
        """Hands back the jobs of a claim that `take_claims` gave away, except those handed back there."""
        returned = self.returned.pop(claim.token, ())
        for record in records:
            if (record.id, record.attempts_started) not in returned:
                self.job_ended(Job(feed.queue, record, 0), Outcome(record.id, claim.token, "hand back"))

    def _on_idle(self) -> None:
        """No job is held: `wait` may now park a claim with the store. Runs even if all trips are in flight."""
        self._state_changed.set()
        if self._waiting_listener is not None:
            self._waiting_listener.interrupt()

    def _on_wake(self, feed: QueueFeed) -> None:
        if self._waiting_claim is not None and self._withdrawal is None:
            self._withdrawal = self._loop.create_task(_withdraw(feed.queue.store, self._waiting_claim))
        feed.domain.wake_up.set()


async def _carry(feed: QueueFeed, updates: list[Waiting]) -> None:
    await carry(feed.queue.store, feed.queue.name, updates)


async def _all(*calls: Awaitable[None]) -> None:
    """Awaits calls side by side until all have ended, whichever fails."""
    for error in await asyncio.gather(*calls, return_exceptions=True):
        if error is not None:
            raise error


async def _withdraw(store: Store, claim: Claim) -> None:
    with suppress(StoreError):  # Then its wait ends by itself, and jobs beyond the room are handed back.
        await store.withdraw(claim)


class RoundTrips(Service):
    """Makes one round trip after another for one failure domain."""

    def __init__(self, dispatcher: Dispatcher, feeds: DomainFeeds) -> None:
        self._dispatcher = dispatcher
        self._feeds = feeds

    async def step(self) -> None:
        await self._dispatcher.trip(self._feeds)


class FeedWaker(Service):
    """Wakes a dry feed: when the store announces new jobs, or after the safety poll."""

    def __init__(self, dispatcher: Dispatcher, feed: QueueFeed) -> None:
        self._dispatcher = dispatcher
        self._feed = feed
        self._listener = dispatcher.listen(feed)

    async def run(self) -> None:
        try:
            await super().run()
        finally:
            self._listener.close()

    async def step(self) -> None:
        await self._feed.dry.wait()
        await self._dispatcher.wait(self._feed, self._listener)
