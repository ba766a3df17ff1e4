"""Settling what ended and claiming what is next, in one trip."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from typing import Final

from msgspec.structs import replace

from ..client.queue import Queue
from ..job.ids import new_token
from ..job.instants import Milliseconds
from ..job.outcomes import Outcome
from ..job.record import JobRecord
from ..store.commands import Claim
from ..store.contract import Listener
from ..store.values import DONE, Answer, Claimed, Settled
from .job import Job
from .lanes import Lane, Lanes, by_domain
from .quarantine import Quarantine
from .service import Service, insist
from .slots import Slots
from .turns import TRIPS_AT_ONCE, Places, Turns

SAFETY_POLL: Final = 5.0
LATE: Final = 0.5
"""Seconds after which a claim that is not answered keeps no places from other domains."""


class Exchange:
    """Keeps the worker's slots full, and records how each attempt ended.

    While trips are under way outcomes gather, and the next trip carries them all; a lone outcome waits for nobody.
    Where a store does two calls side by side, many outcomes that came together go by two trips.
    """

    def __init__(
        self,
        queues: Sequence[Queue],
        slots: Slots,
        quarantine: Quarantine,
        worker: str,
        lock: Milliseconds,
        names: Callable[[str], tuple[str, ...] | None],
        settled: Callable[[Job, Outcome, Answer], None],
        claimed: Callable[[list[Job]], None],
    ) -> None:
        self.lanes = [Lane(queue, self._woken) for queue in queues]
        self.claiming = True
        """If not, it claims no more, and hands back what a claim on its way still brings."""
        self.leaving = False
        """Claims no more, and does not repeat a claim whose answer was lost."""
        self.unsettled: dict[Job, Outcome] = {}
        """Jobs whose outcome the store does not know yet: their locks must be kept until it does."""
        self.returned: dict[str, set[tuple[str, int]]] = {}
        """By the token of a claim that was taken away: the jobs that were handed back elsewhere, and their starts.

        A claim that came to the store after that took jobs anew, perhaps the same ones: that is another start.
        """
        self._claims: dict[str, Claim] = {}
        """Those on their way, by token."""
        self._by_queue = {lane.queue.name: lane for lane in self.lanes}
        self._by_domain = by_domain(self.lanes)
        self._loop = asyncio.get_running_loop()
        self._slots = slots
        self._quarantine = quarantine
        self._worker = worker
        self._lock = lock
        self._names = names
        self._settled = settled
        self._claimed = claimed
        self._turns = Turns(slots)
        self._calm = asyncio.Event()
        self._calm.set()
        self._under_way = 0
        self._left_with: Listener | None = None
        self._waits_with: Listener | None = None
        slots.emptied = self._fell_idle
        quarantine.unsettled = self.unsettled
        quarantine.changed = self.slots_changed

    def services(self, domain: str) -> list[Service]:
        """Those that serve the queues of one failure domain."""
        lanes = self._by_domain[domain]
        return [*(Trips(self, lanes) for _ in range(TRIPS_AT_ONCE)), *(Wakes(self, lane) for lane in lanes.all)]

    def ended(self, job: Job, outcome: Outcome) -> None:
        self.keep_ended(job, outcome)
        # Whoever waits for its place goes first: its own queue would take it with the trip that settles it.
        self._turns.wake_next()
        self._by_queue[job.queue.name].group.news.set()

    def keep_ended(self, job: Job, outcome: Outcome) -> None:
        """From any thread: the next trip carries it."""
        self.unsettled[job] = outcome
        self._by_queue[job.queue.name].ended.append((job, outcome))

    def settled(self, ended: list[tuple[Job, Outcome]], answers: list[Answer]) -> None:
        """Notes what the store has answered."""
        for (job, outcome), answer in zip(ended, answers, strict=True):
            self.unsettled.pop(job, None)
            self._settled(job, outcome, answer)
        self._calm.set()
        self.slots_changed()

    def take_claims(self) -> list[Claim]:
        """From any thread: the claims on their way. The jobs of their answers are not run here after that."""
        taken = (self._claims.pop(token, None) for token in list(self._claims))
        return [claim for claim in taken if claim is not None]

    def leave(self) -> None:
        self.claiming = False
        self.leaving = True
        self._quarantine.leave()
        self.slots_changed()

    def slots_changed(self) -> None:
        """What is wanted from the store may be another thing now."""
        for lane in self.lanes:
            self._woken(lane)

    def look_again(self) -> None:
        """Jobs that were passed over before may be wanted now."""
        for lane in self.lanes:
            lane.wake()

    async def settle_all(self) -> None:
        """Returns when every outcome is settled."""
        while self._under_way or any(lane.ended for lane in self.lanes):
            self._calm.clear()
            await self._calm.wait()

    async def idle(self) -> None:
        """Returns when no job is held or unsettled; if it does not claim, also when no claim may bring one any more."""
        while self._slots.held or self.unsettled or (self._under_way and not self.claiming):
            self._calm.clear()
            await self._calm.wait()

    async def trip(self, lanes: Lanes) -> None:
        """Waits until there is something to do in one of the lanes, and does it."""
        while (plan := self._plan(lanes)) is None:
            self._calm.set()
            self._turns.pass_on()
            lanes.news.clear()
            await lanes.news.wait()
        lane, wanted = plan
        most = len(lane.ended)
        if not lanes.under_way and most >= lane.queue.store.offers.side_by_side_from:
            # The other half is the next trip's: the store does one while the jobs of the other run.
            wanted -= wanted // 2
            most -= most // 2
        ended = lane.take_ended(most)
        if not ended and not wanted:
            return  # Settled by another thread meanwhile.
        places = Places(self._slots, wanted)
        late = self._loop.call_later(LATE, self._turns.lapse, places) if wanted and lanes.has_others else None
        self._turns.pass_on()
        lanes.reserved += wanted
        lanes.under_way += 1
        self._under_way += 1
        try:
            await self._go(lane, ended, places)
        except BaseException:
            # Not settled: whoever asks again shall find them.
            lane.ended.extendleft(reversed(ended))
            raise
        finally:
            lanes.reserved -= wanted
            lanes.under_way -= 1
            self._under_way -= 1
            self._calm.set()
            self._turns.end(places)
            if late is not None:
                late.cancel()

    async def wait(self, lane: Lane, listener: Listener) -> None:
        """Waits until a dry lane is worth a claim, and takes the jobs that come if the store gives them right away."""
        if not lane.dry.is_set():
            # It was woken again before this had its turn.
            return
        timeout = SAFETY_POLL * random.uniform(0.8, 1.2)  # noqa: S311 - spreads load
        wanted = self._quarantine.limit(self._slots.free) if self.claiming else 0
        if wanted <= 0 or len(self.lanes) > 1:
            # Places that one lane's claim keeps would be missing to the others.
            await listener.wait(timeout)
            lane.wake()
            return
        if self._slots.held:
            # A handler that blocks the loop would keep from other workers what this one is given meanwhile.
            self._waits_with = listener
            try:
                is_woken = await listener.wait(timeout)
            finally:
                self._waits_with = None
            if is_woken or self._slots.held:
                lane.wake()
            return
        self._slots.reserved += wanted
        self._under_way += 1
        self._left_with, wakes = listener, lane.wakes
        try:
            served = await listener.claim(self._request(lane, wanted), timeout)
        finally:
            self._left_with = None
            self._slots.reserved -= wanted
            self._under_way -= 1
            self._calm.set()
            lane.group.news.set()
        if served is None or len(served.claimed.jobs) == wanted:
            lane.wake()
        if served is not None:
            self._note(lane, wanted, served.claimed, wakes)
            self._receive(lane, served.claimed.jobs, served.since, wanted)
            # The handlers begin before this goes on.
            await asyncio.sleep(0)

    def _request(self, lane: Lane, wanted: int) -> Claim:
        queue = lane.queue.name
        return Claim(queue, self._worker, new_token(), wanted, self._lock, self._names(queue), isolates=True)

    def _note(self, lane: Lane, wanted: int, claimed: Claimed, wakes: int) -> None:
        """A claim that got less than it wanted left nothing, unless the lane was woken since it was sent."""
        if len(claimed.jobs) < wanted and lane.wakes == wakes:
            again = claimed.again_at
            lane.run_dry(None if again is None else max(0, again - claimed.now) / 1000)

    def _plan(self, lanes: Lanes) -> tuple[Lane, int] | None:
        """The lane to serve next, and how many jobs to claim in it.

        Only the lane whose turn it is claims, and its outcomes ride along: a lane that always has jobs would otherwise
        fill every place that its own jobs leave. Outcomes of the others let it go ahead once, but not again.
        """
        late = next((lane for lane in lanes.all if lane.ended and lane.let_others_go), None)
        wanted = self._turns.wanted(lanes) if self.claiming and late is None else 0
        wanted = self._quarantine.limit(wanted, lanes.reserved)
        if wanted > 0 and (lane := lanes.next()) is not None:
            return lane, wanted
        lane_to_settle = late or next((lane for lane in lanes.all if lane.ended), None)
        if lane_to_settle is None:
            return None
        lane_to_settle.let_others_go = False
        return lane_to_settle, 0

    async def _go(self, lane: Lane, ended: list[tuple[Job, Outcome]], places: Places) -> None:
        queue, wanted = lane.queue, places.wanted
        claim = self._request(lane, wanted) if wanted else None
        outcomes = [outcome for _, outcome in ended]
        if claim is not None:
            self._claims[claim.token] = claim
        started, wakes = time.monotonic(), lane.wakes
        repeated = False
        try:
            if outcomes:

                async def settle(repeat: bool) -> Settled:
                    nonlocal repeated
                    repeated = repeat
                    then = replace(claim, repeat=True) if claim and repeat else claim
                    return await queue.store.settle(queue.name, outcomes, then)

                settled = await insist(settle, "settle")
                answers, claimed = settled.answers, settled.claimed
            else:
                assert claim is not None
                answers = []
                claimed = await insist(
                    lambda repeat: queue.store.claim(replace(claim, repeat=repeat)),
                    "claim",
                    unless=lambda: self.leaving,
                )
        finally:
            is_taken = claim is not None and self._claims.pop(claim.token, None) is None
        places.release()
        if claimed is not None and claim is not None:
            self._note(lane, wanted, claimed, wakes)
            if is_taken:
                self._hand_back(lane, claim, claimed.jobs)
            elif claimed.jobs:
                # The places of a claim that was late may be taken.
                self._receive(lane, claimed.jobs, started, max(0, self._slots.free) if places.is_late else wanted)
        for (job, outcome), answer in zip(ended, answers, strict=True):
            self.unsettled.pop(job, None)
            # Missing on a repeat: the first call settled it and retention took it; only the answer was lost.
            self._settled(job, outcome, DONE if repeated and answer.verdict == "missing" else answer)
        self._quarantine.look()

    def _receive(self, lane: Lane, records: list[JobRecord], started: float, room: int) -> None:
        queue = lane.queue
        jobs = [Job(queue, record, started) for record in records]
        room = min(room, self._room(started))
        if len(jobs) > room:
            for job in jobs[room:]:
                self.ended(job, Outcome(job.id, job.token, "hand back"))
            if not room:
                return
            jobs = jobs[:room]
        if self._quarantine.is_alert or any(job.record.stalled_count for job in jobs):
            self._receive_suspects(jobs)
        else:
            self._claimed(jobs)
            self._slots.start(jobs)

    def _receive_suspects(self, jobs: list[Job]) -> None:
        """The same for jobs of which some may not stall again, or that came while one runs alone."""
        kept, back = self._quarantine.divide(jobs)
        for job in back:
            self.ended(job, Outcome(job.id, job.token, "hand back"))
        self._claimed(kept)
        self._quarantine.start(kept)

    def _room(self, started: float) -> int:
        """How many of the jobs that a claim has brought may begin: it may have left before a pause or a lower limit."""
        if not self.claiming:
            return 0
        # The lock may have run out before the answer came.
        is_late = time.monotonic() - started > self._lock / 1000
        return 0 if is_late else max(0, self._slots.size - len(self._slots.held))

    def _hand_back(self, lane: Lane, claim: Claim, records: list[JobRecord]) -> None:
        """Jobs of a claim that another thread took over, but for those that it has seen."""
        returned = self.returned.pop(claim.token, ())
        for record in records:
            if (record.id, record.attempts_started) not in returned:
                self.ended(Job(lane.queue, record, 0), Outcome(record.id, claim.token, "hand back"))

    def _fell_idle(self) -> None:
        """A claim may be left with the store now. Whoever waits for that is told even if all trips are away."""
        self._calm.set()
        if self._waits_with is not None:
            self._waits_with.interrupt()

    def _woken(self, lane: Lane) -> None:
        if self._left_with is not None:
            self._left_with.interrupt()
        lane.group.news.set()


class Trips(Service):
    def __init__(self, exchange: Exchange, lanes: Lanes) -> None:
        self._exchange = exchange
        self._lanes = lanes

    async def step(self) -> None:
        await self._exchange.trip(self._lanes)


class Wakes(Service):
    """Wakes a dry lane: when the store hints at new jobs, or after a while anyway."""

    def __init__(self, exchange: Exchange, lane: Lane) -> None:
        self._exchange = exchange
        self._lane = lane
        self._listener = lane.queue.store.listen("jobs", [lane.queue.name])

    async def run(self) -> None:
        try:
            await super().run()
        finally:
            self._listener.close()

    async def step(self) -> None:
        await self._lane.dry.wait()
        await self._exchange.wait(self._lane, self._listener)
