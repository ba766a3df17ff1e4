"""What the keeper's thread does in place of a loop that is blocked.

What waits for the loop can be taken from both sides, by one step that the interpreter does not divide:

    for the loop                    waits in            for the keeper's thread
    a slot begins the job      <-   Slots._ready   ->   the job is handed back
    a trip settles the outcome <-   Lane.ended     ->   the outcome is settled
    the jobs of the answer run <-   Exchange.claims ->  the claim is repeated, its jobs are handed back

So a job is either begun or handed back, and never both.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

from msgspec.structs import replace

from ..errors import StoreError
from ..job.outcomes import Outcome
from ..job.record import JobRecord
from ..store.commands import Claim
from ..store.contract import Store
from ..store.values import Answer
from .attempts import Attempts
from .completing import is_completing
from .exchange import Exchange
from .job import Job
from .lanes import Lane
from .service import log
from .slots import Slots

RELIEF_LIMIT: Final = 5.0
"""Seconds that the store has for each call, while there is time to try again."""

Ended: TypeAlias = list[tuple[Job, Outcome]]


class GivenUp(NamedTuple):
    """What became of the jobs that a worker held when its loop was given up."""

    handed_back: int
    settled: int
    left: int
    """Jobs of which the store could not be told: they run again when their locks have ended."""


class Rescue:
    """All methods are for the keeper's thread."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        slots: Slots,
        attempts: Attempts,
        exchange: Exchange,
        stores: Mapping[str, Store],
    ) -> None:
        self._loop = loop
        self._slots = slots
        self._attempts = attempts
        self._exchange = exchange
        self._stores = stores
        """Those of the keeper's thread, by queue; of a queue that could not be reached yet there is none."""

    @property
    def is_needed(self) -> bool:
        """Whether jobs depend on the loop now."""
        return bool(self._slots.held or self._exchange.unsettled)

    async def relieve(self) -> int:
        """Hands back jobs that have not begun, and settles outcomes that wait. Answers how many jobs it handed back.

        What the store cannot be told now waits for the loop again, or for the next call.
        """
        not_begun = self._take_not_begun()
        claims = self._exchange.take_claims()
        lanes = [(lane, ended) for lane in self._exchange.lanes if (ended := lane.take_ended())]
        settled = await asyncio.gather(*(self._settle_waiting(lane, ended, RELIEF_LIMIT) for lane, ended in lanes))
        return (not_begun if all(settled) else 0) + await self._return_claimed(claims, RELIEF_LIMIT)

    async def give_up(self, limit: float) -> GivenUp:
        """Ends every job that the worker holds: by its outcome where that is known, else it is handed back."""
        self._take_not_begun()
        claims = self._exchange.take_claims()
        waiting = [(lane, lane.take_ended()) for lane in self._exchange.lanes if lane.queue.name in self._stores]
        # What a trip carries may not have come to the store, and a repeat changes nothing.
        carried = dict(self._exchange.unsettled)
        for _, ended in waiting:
            for job, _outcome in ended:
                carried.pop(job, None)
        begun = {
            job: self._attempts.completed_in_thread(job) or _hand_back(job)
            for job in list(self._slots.held)
            if not job.ended and not is_completing(job)
        }
        rest = [*carried.items(), *begun.items()]
        settling = [self._settle_all(lane, ended, rest, limit) for lane, ended in waiting]
        returned, told = await asyncio.gather(self._return_claimed(claims, limit), asyncio.gather(*settling))
        outcomes = [outcome for is_told, outcomes in told for outcome in outcomes if is_told]
        handed_back = sum(outcome.move == "hand back" for outcome in outcomes)
        left = sum(len(outcomes) for is_told, outcomes in told if not is_told)
        return GivenUp(handed_back + returned, len(outcomes) - handed_back, left)

    def _take_not_begun(self) -> int:
        jobs = self._slots.take_ready()
        for job in jobs:
            job.ended = True
            if job.signal != "cancelled":
                self._exchange.keep_ended(job, _hand_back(job))
            # First there, then no longer here: its lock is renewed all the time.
            self._slots.held.discard(job)
        if jobs:
            self._loop.call_soon_threadsafe(self._slots.taken, jobs)
        return len(jobs)

    async def _settle_all(self, lane: Lane, ended: Ended, rest: Ended, limit: float) -> tuple[bool, list[Outcome]]:
        queue = lane.queue.name
        outcomes = [outcome for job, outcome in rest if job.queue.name == queue]
        is_told = await self._settle_waiting(lane, ended, limit)
        if outcomes and is_told:
            is_told = await _settle(self._stores[queue], queue, outcomes, limit) is not None
        return is_told, [*outcomes, *(outcome for _, outcome in ended)]

    async def _settle_waiting(self, lane: Lane, ended: Ended, limit: float) -> bool:
        """Whether the store could be told."""
        queue = lane.queue.name
        answers: list[Answer] | None = None
        try:
            answers = await _settle(self._stores[queue], queue, [outcome for _, outcome in ended], limit)
        finally:
            if answers is None:
                lane.ended.extendleft(reversed(ended))
                self._loop.call_soon_threadsafe(self._exchange.slots_changed)
            else:
                self._loop.call_soon_threadsafe(self._exchange.settled, ended, answers)
        return answers is not None

    async def _return_claimed(self, claims: list[Claim], limit: float) -> int:
        """Hands back the jobs of claims whose answers the loop has not seen: a repeat gives the same ones."""
        # First all claims: one that has not come to the store yet would be given what another's repeat hands back.
        found = await asyncio.gather(*(self._repeat(claim, limit) for claim in claims))
        outcomes: dict[str, list[Outcome]] = {}
        for claim, jobs in zip(claims, found, strict=True):
            self._exchange.returned[claim.token] = {(job.id, job.attempts_started) for job in jobs}
            outcomes.setdefault(claim.queue, []).extend(Outcome(job.id, claim.token, "hand back") for job in jobs)
        settling = (_settle(self._stores[queue], queue, ended, limit) for queue, ended in outcomes.items())
        return sum(len(answers or ()) for answers in await asyncio.gather(*settling))

    async def _repeat(self, claim: Claim, limit: float) -> list[JobRecord]:
        try:
            async with asyncio.timeout(limit):
                return (await self._stores[claim.queue].claim(replace(claim, repeat=True))).jobs
        except (StoreError, TimeoutError):
            return []


async def _settle(store: Store, queue: str, outcomes: list[Outcome], limit: float) -> list[Answer] | None:
    """None if the store could not be told."""
    if not outcomes:
        return []
    try:
        async with asyncio.timeout(limit):
            return (await store.settle(queue, outcomes, None)).answers
    except (StoreError, TimeoutError) as trouble:
        log.warning("%d outcomes in %r could not be settled: %s", len(outcomes), queue, str(trouble) or "no answer")
        return None


def _hand_back(job: Job) -> Outcome:
    return Outcome(job.id, job.token, "hand back")
