"""Handing back jobs and settling outcomes from the maintenance thread, while the application's loop is blocked.

Work that waits for the loop can be taken by either thread, in one step that is atomic in the interpreter:

    the loop                        waits in              the maintenance thread
    a slot starts the job      <-   Slots._ready      ->  the job is handed back
    a trip settles the outcome <-   QueueFeed.ended   ->  the outcome is settled
    the claimed jobs run       <-   Dispatcher._claims -> the claim is repeated or, if it waits,
                                                          withdrawn, and its jobs are handed back

So a job is either started or handed back, never both.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

from msgspec.structs import replace

from ...errors import StoreError
from ...job.marks import Marking
from ...job.outcomes import Outcome
from ...job.record import JobRecord
from ...store.commands import Claim
from ...store.contract import Store
from ...store.values import Answer
from ..attempts import Attempts
from ..completing import is_completing
from ..dispatcher import Dispatcher
from ..feeds import QueueFeed
from ..job import Job
from ..service import log
from ..slots import Slots

RELIEF_LIMIT: Final = 5.0
"""Seconds that each store call may take, while there is time to try again."""

Ended: TypeAlias = list[tuple[Job, Outcome]]
Answered: TypeAlias = tuple[Outcome, Answer | None]
"""An outcome, and the store's answer to it; None if there was none."""


class GivenUp(NamedTuple):
    """Counts of the jobs that a worker held when its loop was given up, without those that it had lost."""

    handed_back: int
    settled: int
    left: int
    """Jobs that could not be recorded in the store: they run again when their locks have expired."""


class Rescue:
    """Acts for the blocked loop. All methods run in the maintenance thread."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        slots: Slots,
        attempts: Attempts,
        dispatcher: Dispatcher,
        stores: Mapping[str, Store],
    ) -> None:
        self._loop = loop
        self._slots = slots
        self._attempts = attempts
        self._dispatcher = dispatcher
        self._stores = stores
        """The maintenance thread's store handles, by queue; a queue that could not be reached yet has none."""

    @property
    def is_needed(self) -> bool:
        """True if jobs depend on the loop now, or a claim in flight may bring some."""
        return self.has_jobs or self._dispatcher.has_claims

    @property
    def has_jobs(self) -> bool:
        return bool(self._slots.held or self._dispatcher.unsettled)

    async def relieve(self) -> int:
        """Hands back jobs that have not started, and settles waiting outcomes. Answers how many jobs it handed back.

        Outcomes that cannot be settled now go back to the feed, for the loop or the next call.
        """
        self._take_unstarted()
        claims = self._dispatcher.take_claims()
        feeds = [(feed, ended) for feed in self._dispatcher.feeds if (ended := feed.take_ended())]
        settled = await asyncio.gather(*(self._settle_waiting(feed, ended, RELIEF_LIMIT) for feed, ended in feeds))
        handed_back = sum(_is_handed_back(*answered) for each in settled for answered in each)
        return handed_back + await self._return_claimed(claims, RELIEF_LIMIT)

    async def give_up(self, limit: float) -> GivenUp:
        """Ends every job that the worker holds: settles its outcome if that is known, else hands it back."""
        self._take_unstarted()
        claims = self._dispatcher.take_claims()
        waiting = [(feed, feed.take_ended()) for feed in self._dispatcher.feeds if feed.queue.name in self._stores]
        # Outcomes in flight may not have reached the store; settling twice changes nothing.
        carried = dict(self._dispatcher.unsettled)
        for _, ended in waiting:
            for job, _outcome in ended:
                carried.pop(job, None)
        begun = {
            job: self._attempts.completed_in_thread(job) or _hand_back(job, job.run.unstored())
            for job in list(self._slots.held)
            if not job.ended and not is_completing(job)
        }
        rest = [*carried.items(), *begun.items()]
        settling = [self._settle_all(feed, ended, rest, limit) for feed, ended in waiting]
        returned, settled = await asyncio.gather(self._return_claimed(claims, limit), asyncio.gather(*settling))
        answered = [pair for each in settled for pair in each]
        handed_back = sum(_is_handed_back(outcome, answer) for outcome, answer in answered)
        done = sum(answer is not None and answer.verdict == "done" for _, answer in answered)
        left = sum(answer is None for _, answer in answered)
        return GivenUp(handed_back + returned, done - handed_back, left)

    def _take_unstarted(self) -> None:
        jobs = self._slots.take_unstarted()
        for job in jobs:
            job.ended = True
            if job.interruption != "cancelled":
                self._dispatcher.enqueue_outcome(job, _hand_back(job))
            # In this order, so that its lock is renewed without a gap.
            self._slots.held.discard(job)
        if jobs:
            self._loop.call_soon_threadsafe(self._slots.taken, jobs)

    async def _settle_all(self, feed: QueueFeed, ended: Ended, rest: Ended, limit: float) -> list[Answered]:
        queue = feed.queue.name
        outcomes = [outcome for job, outcome in rest if job.queue.name == queue]
        waiting = await self._settle_waiting(feed, ended, limit)
        # A store that has not answered just now would only use up the time.
        is_silent = any(answer is None for _, answer in waiting)
        answers = None if is_silent else await _settle(self._stores[queue], queue, outcomes, limit)
        return [*waiting, *_pairs(outcomes, answers)]

    async def _settle_waiting(self, feed: QueueFeed, ended: Ended, limit: float) -> list[Answered]:
        queue = feed.queue.name
        answers: list[Answer] | None = None
        try:
            answers = await _settle(self._stores[queue], queue, [outcome for _, outcome in ended], limit)
        finally:
            if answers is None:
                feed.ended.extendleft(reversed(ended))
                self._loop.call_soon_threadsafe(self._dispatcher.slots_changed)
            else:
                self._loop.call_soon_threadsafe(self._dispatcher.note_answers, ended, answers)
        return _pairs([outcome for _, outcome in ended], answers)

    async def _return_claimed(self, claims: list[Claim], limit: float) -> int:
        """Hands back the jobs of claims whose answers the loop has not seen: a repeated claim answers the same jobs."""
        # All repeats first: a claim that reaches the store only now would be given jobs that another one hands back.
        found = await asyncio.gather(*(self._repeat(claim, limit) for claim in claims))
        outcomes: dict[str, list[Outcome]] = {}
        for claim, jobs in zip(claims, found, strict=True):
            self._dispatcher.returned[claim.token] = {(job.id, job.attempts_started) for job in jobs}
            if jobs:
                outcomes.setdefault(claim.queue, []).extend(Outcome(job.id, claim.token, "hand back") for job in jobs)
        settling = (_settle(self._stores[queue], queue, ended, limit) for queue, ended in outcomes.items())
        settled = await asyncio.gather(*settling)
        return sum(answer.verdict == "done" for answers in settled for answer in answers or ())

    async def _repeat(self, claim: Claim, limit: float) -> list[JobRecord]:
        """The jobs that the claim was given; none if the store cannot be reached. A waiting claim is withdrawn."""
        store = self._stores.get(claim.queue)
        if store is None:
            return []
        try:
            async with asyncio.timeout(limit):
                if claim.wait:
                    return (await store.withdraw(claim)).jobs
                return (await store.claim(replace(claim, repeat=True))).jobs
        except (StoreError, TimeoutError):
            return []


async def _settle(store: Store, queue: str, outcomes: list[Outcome], limit: float) -> list[Answer] | None:
    """None if the store did not answer."""
    if not outcomes:
        return []
    try:
        async with asyncio.timeout(limit):
            return (await store.settle(queue, outcomes, None)).answers
    except (StoreError, TimeoutError) as trouble:
        log.warning("%d outcomes in %r could not be settled: %s", len(outcomes), queue, str(trouble) or "no answer")
        return None


def _hand_back(job: Job, unstored: Marking | None = None) -> Outcome:
    return Outcome(job.id, job.token, "hand back", marking=unstored)


def _pairs(outcomes: list[Outcome], answers: list[Answer] | None) -> list[Answered]:
    if answers is None:
        return [(outcome, None) for outcome in outcomes]
    return list(zip(outcomes, answers, strict=True))


def _is_handed_back(outcome: Outcome, answer: Answer | None) -> bool:
    """False if the job was cancelled, removed or taken by another worker before."""
    return outcome.move == "hand back" and answer is not None and answer.verdict == "done"
