"""Quarantine: a job that may not stall again runs alone, so that a stall can be blamed on it and on no other job.

A handler that kills its process stalls every job that the process holds. Most of them are innocent, and while they run
side by side nothing shows which one is not. So the store gives up a job that stalled before only if its last attempt
ran alone (`job/stalls.py`), and a worker makes such an attempt run alone:

    claimed -- never stalled, or may stall again ------------------------------------------> runs beside the others
       |
       +-- a suspect: is kept back, while its worker claims nothing more
              | no other handler is in this process            | others run on for all of its patience
              v                                                v
           marked as alone in the store, then runs          runs beside the others, unmarked
              | settled                | runs on for all of its patience
              v                        v
           over                     mark withdrawn: the others go on beside it

A worker has one suspect at a time and hands further ones back, for other workers; after one it claims single jobs until
one comes that is no suspect. The patience doubles with each stall, so that even beside long-running jobs a suspect gets
to run alone eventually. Handlers in their own processes do not count as neighbours: they can kill only themselves.

The mark stays until the outcome is stored: a worker that dies before that stalls the job too. Other workers of the same
process start no handler meanwhile (`neighbours.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable
from typing import Final

from ..client.queue import Queue
from ..errors import StoreUnavailable
from ..job.options import readable_options
from ..job.outcomes import Outcome
from ..job.stalls import judge_stall
from ..store.values import JobUpdate, StallRules
from .handlers import Handlers
from .job import Job
from .neighbours import NEIGHBOURS
from .service import Service, log, until_answered
from .slots import Slots

PATIENCE: Final = 1.0
"""Seconds that a suspect waits for other handlers to end, and seconds that other jobs then wait for it."""
MOST_DOUBLINGS: Final = 14


class Quarantine(Service):
    """Isolates the suspects among the jobs of one worker."""

    def __init__(self, slots: Slots, handlers: Handlers, stalls_in: Callable[[Queue], StallRules]) -> None:
        self.suspect: Job | None = None
        """The job that waits to run alone, runs alone, or has an outcome that is not settled yet."""
        self.is_alert = False
        """True if claimed jobs must be checked: there is a suspect, or more may come."""
        self.unsettled: Collection[Job] = ()
        """Jobs whose outcome is not stored yet."""
        self.changed: Callable[[], None] = lambda: None
        """Called when the result of `limit` may have changed."""
        self._slots = slots
        self._handlers = handlers
        self._stalls_in = stalls_in
        self._is_exclusive = False
        self._kept_back: list[Job] = []
        """Jobs held under their locks, which must not start before the quarantine is over."""
        self._wake_up = asyncio.Event()
        self.loop = asyncio.get_running_loop()
        self.stands_back_for: object = None
        """Set while another worker of this process has a suspect; then this one starts nothing (see `Neighbour`)."""

    async def run(self) -> None:
        NEIGHBOURS.join(self)
        try:
            await super().run()
        finally:
            NEIGHBOURS.leave(self)

    def check(self) -> None:
        """Re-evaluates the conditions it waits for: a job has ended, or another worker has changed."""
        if self.suspect is not None:
            self._wake_up.set()
        if self.stands_back_for is not None:
            NEIGHBOURS.notify_holder()

    def _watch_endings(self) -> None:
        """Is called at each job's end only while this or another worker of the process has a suspect."""
        is_waiting = self.suspect is not None or self.stands_back_for is not None
        self._slots.on_job_ended = self.check if is_waiting else None

    def stand_back(self, request: object) -> None:
        self.stands_back_for = request
        self.is_alert = True
        self._watch_endings()
        self._start_kept_back()
        self.changed()
        self.check()

    @property
    def is_quiet(self) -> bool:
        """True if a crash of this process would interrupt no handler of this worker.

        The suspect and the jobs kept back for it have not started.
        """
        if self._slots.leaked:
            return False
        # list() copies under the interpreter's lock: this is called from any thread.
        return all(job in self._kept_back or self._is_apart(job) for job in list(self._slots.held))

    def limit(self, wanted: int, under_way: int = 0) -> int:
        """How many of the `wanted` jobs may be claimed, given how many a claim in flight may bring."""
        if self.suspect is not None or self.stands_back_for is not None:
            return 0
        return min(wanted, 1 - under_way) if self.is_alert else wanted

    def split(self, jobs: Iterable[Job]) -> tuple[list[Job], list[Job]]:
        """Splits claimed jobs into those to keep and suspects to hand back. `start` may delay some of the former."""
        kept, back = [], []
        self.is_alert = self.suspect is not None or self.stands_back_for is not None
        for job in jobs:
            if not self._is_suspect(job):
                kept.append(job)
            elif self.suspect is None:
                self.suspect, self.is_alert = job, True
                self._kept_back.append(job)
                kept.append(job)
            else:
                back.append(job)
        self._watch_endings()
        self.check()
        return kept, back

    def start(self, jobs: Collection[Job]) -> None:
        """Starts all but the suspect; if a job runs alone, in this or another worker, they wait for its end."""
        if self._is_exclusive or self.stands_back_for is not None:
            self._kept_back += [job for job in jobs if job is not self.suspect]
        self._slots.hold(jobs)
        self._slots.start([job for job in jobs if job not in self._kept_back])

    def hand_back_waiting(self) -> None:
        """Hands back jobs that have not started, because the worker ends."""
        kept_back, self._kept_back = self._kept_back, []
        for job in kept_back:
            self._slots.abandon(job, Outcome(job.id, job.token, "hand back"))
        self.check()

    async def step(self) -> None:
        await self._until(lambda: self.suspect is not None)
        assert self.suspect is not None
        try:
            await self._isolate(self.suspect)
        finally:
            # Also if this was cancelled before the suspect started.
            self._release()

    async def _isolate(self, job: Job) -> None:
        log.info("%r stalled before, and fails if it does so again: it is run alone", job)
        patience = self._patience(job)
        if not await self._within(patience, lambda: job.ended or self._acquire(job)):
            log.warning("%r could not be run alone within %.0f s: it is run beside others", job, patience)
        if job.ended or not self._is_exclusive:
            return
        if not await self._mark(job, alone=True, unless=lambda: job.cancelled or job.ended):
            return
        self._kept_back.remove(job)
        self._slots.start([job])
        if not await self._within(patience, lambda: self._is_over(job)):
            log.info("%r has run alone for %.0f s: others go on beside it", job, patience)
            await self._mark(job, alone=False, unless=lambda: self._is_over(job))

    async def _mark(self, job: Job, *, alone: bool, unless: Callable[[], bool]) -> bool:
        """Stores whether the job runs alone. False if that failed or `unless` became true."""
        store, queue = job.queue.store, job.queue.name
        change = JobUpdate(job.id, job.token, alone=alone)
        try:
            [answer] = await until_answered(lambda _: store.update(queue, [change]), "update", unless=unless)
        except StoreUnavailable:
            return False
        if answer.verdict != "done":
            self._slots.interrupt(job, "lost")
        return not unless()

    def _acquire(self, job: Job) -> bool:
        """True if the suspect is alone, and stays so until `_release`."""
        others_are_quiet = NEIGHBOURS.acquire(self) and self.stands_back_for is None
        # Outcomes would be lost with the process; but those of a store that cannot be reached may take long.
        is_settled = all(other.queue.store.url != job.queue.store.url for other in self.unsettled)
        self._is_exclusive = others_are_quiet and self.is_quiet and is_settled
        return self._is_exclusive

    def _release(self) -> None:
        self.suspect, self._is_exclusive = None, False
        self._watch_endings()
        NEIGHBOURS.release(self)
        self._start_kept_back()
        self.changed()

    def _start_kept_back(self) -> None:
        if self._is_exclusive or self.stands_back_for is not None:
            return
        waiting, self._kept_back = self._kept_back, [job for job in self._kept_back if job is self.suspect]
        self._slots.start([job for job in waiting if job is not self.suspect and not job.ended])

    def _is_suspect(self, job: Job) -> bool:
        record = job.record
        if not record.stalled_count:
            return False
        rules = self._stalls_in(job.queue)
        verdict = judge_stall(
            stalled_count=record.stalled_count,
            attempts_made=record.attempts_made,
            attempts=readable_options(record.options).attempts,
            is_alone=True,
            max_stalled_count=rules.max_stalled_count,
            on_stalled=rules.on_stalled,
            counts_as_attempt=rules.counts_as_attempt,
        )
        return verdict in ("too often", "last attempt")

    def _patience(self, job: Job) -> float:
        beyond = job.record.stalled_count - self._stalls_in(job.queue).max_stalled_count
        return float(PATIENCE * 2 ** min(max(beyond, 0), MOST_DOUBLINGS))

    def _is_over(self, job: Job) -> bool:
        return job.ended and job not in self.unsettled

    def _is_apart(self, job: Job) -> bool:
        handler = self._handlers.find(job.queue.name, job.name)
        return handler is not None and handler.run_in == "process"

    async def _within(self, seconds: float, condition: Callable[[], bool]) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._until(condition)
        except TimeoutError:
            return condition()
        return True

    async def _until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self._wake_up.clear()
            await self._wake_up.wait()
