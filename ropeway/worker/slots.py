"""The slots in which a worker runs its jobs."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import Any, Final

from ..client.updates import EnqueueUpdate, enqueue_update
from ..job.outcomes import Outcome
from .attempts import Attempts
from .job import REVOKED, Interruption, Job
from .parking import Parkable
from .service import log

LOOP_SHARE: Final = 0.005
"""Seconds after which a slot yields to the loop, even if its jobs never await anything."""


class Slot:
    """A task that runs one job after another."""

    __slots__ = ("attempts", "enqueue_update", "job", "resume", "task")

    def __init__(self, attempts: Attempts, resume: Callable[[Parkable], None], enqueue_update: EnqueueUpdate) -> None:
        self.attempts = attempts
        """For steps of its jobs: the rules and threads of attempts are theirs, too."""
        self.resume = resume
        """Goes on, in any slot, with an attempt that was parked."""
        self.enqueue_update = enqueue_update
        """Sends updates of attempts that may be parked."""
        self.job: Job | None = None
        self.task: asyncio.Task[None] | None = None


class Slots:
    """Runs at most `size` handlers at a time.

    Slots are created on demand and then kept. One slot is woken at a time, and wakes the next if there is more to do:
    jobs that end without awaiting anything are all run by one slot, for the cost of a call each. So are the phases of
    pipelines (`parking.py`).
    """

    def __init__(
        self,
        size: int,
        attempts: Attempts,
        ended: Callable[[Job, Outcome | None], None],
        observe: Callable[[str, float], None],
    ) -> None:
        """`observe` is called for each attempt that ran: with its queue, and how many seconds it took."""
        self.size = size
        self.reserved = 0
        """Slots that claims in flight may fill."""
        self.held: set[Job] = set()
        """Jobs whose locks must be renewed: running, or about to run."""
        self.on_emptied: Callable[[], None] = lambda: None
        """Called when no job is held any more."""
        self.on_job_ended: Callable[[], None] | None = None
        """Called when a job is no longer held. Set only while somebody waits for that: each job would pay for it."""
        self.enqueue_update = enqueue_update
        """Sends updates of attempts that may be parked."""
        self._attempts = attempts
        self._ended = ended
        self._observe = observe
        self._ready: deque[Job] = deque()
        self._parked: dict[Job, Parkable] = {}
        """Attempts that wait outside of slots, for the store."""
        self._resumed: deque[Parkable] = deque()
        """Those of them that can go on."""
        self._slots: set[Slot] = set()
        self._abandoned: set[Slot] = set()
        self._idle: deque[asyncio.Future[None]] = deque()
        self._waking = False
        self._closed = False
        self._none_held = asyncio.Event()
        self._none_held.set()

    @property
    def leaked(self) -> int:
        """Handlers that were given up and are still running."""
        return len(self._abandoned)

    @property
    def free(self) -> int:
        return self.size - len(self.held) - self.reserved

    def hold(self, jobs: Iterable[Job]) -> None:
        """Holds jobs, so that their locks are renewed, until they are started or abandoned."""
        self.held.update(jobs)
        if self.held:
            self._none_held.clear()

    def start(self, jobs: Iterable[Job]) -> None:
        self.held.update(jobs)
        self._ready.extend(jobs)
        if self._ready:
            self._none_held.clear()
            self._wake_slot()

    def shed(self, most: int) -> None:
        """Hands back jobs that have not started, last ones first, while more than `most` are held."""
        while self._ready and len(self.held) > most:
            job = self._ready.pop()
            if not job.ended:
                self._end(job, Outcome(job.id, job.token, "hand back"))

    def take_unstarted(self) -> list[Job]:
        """Takes away the jobs that no slot has started, so that none will. From any thread."""
        jobs: list[Job] = []
        with suppress(IndexError):
            while True:
                jobs.append(self._ready.popleft())
        return [job for job in jobs if not job.ended]

    def taken(self, jobs: Iterable[Job]) -> None:
        """Accounts, on the loop, for jobs that `take_unstarted` gave away."""
        for job in jobs:
            if job.interruption == "cancelled":
                self._ended(job, None)
        if not self.held:
            self._emptied()

    def interrupt(self, job: Job, why: Interruption) -> None:
        """Asks a handler to stop: a coroutine is cancelled; a thread can see `job.cancelled`.

        Only the first one cancels: a second one would hit the handler's clean-up. `cancelled` and `removed` replace
        others, because then there is nothing left to settle.
        """
        if job.ended:
            return
        if job.interruption is None or (why in REVOKED and job.interruption not in REVOKED):
            job.interruption = why
        if not job.cancel_sent and not job.threaded and job.slot is not None and job.slot.task is not None:
            job.cancel_sent = True
            job.slot.task.cancel()
        elif job.threaded:
            job.run.end_tries()
        elif job.slot is None and not job.cancel_sent and (parked := self._parked.get(job)) is not None:
            job.cancel_sent = True
            parked.cancel()

    def abandon(self, job: Job, outcome: Outcome | None) -> bool:
        """Gives up on a handler that does not stop, and replaces its slot. True if a handler was running."""
        slot = job.slot
        if job.ended:
            return False
        if slot is not None:
            self._slots.discard(slot)
            self._abandoned.add(slot)
        self._parked.pop(job, None)
        self._end(job, outcome)
        if self._ready or self._resumed:
            self._wake_slot()
        return slot is not None

    async def empty(self) -> None:
        """Returns when no job is held."""
        await self._none_held.wait()

    def close(self) -> None:
        self._closed = True
        for slot in self._slots | self._abandoned:
            if slot.task is not None:
                slot.task.cancel()

    def _resume(self, parked: Parkable) -> None:
        self._resumed.append(parked)
        if not self._waking:
            self._wake_slot()

    def _wake_slot(self) -> None:
        """Wakes an idle slot, or creates one, to take the next job."""
        if self._waking:
            return
        while self._idle:
            idle = self._idle.popleft()
            if not idle.done():
                self._waking = True
                idle.set_result(None)
                return
        if len(self._slots) < self.size:
            self._waking = True
            slot = Slot(self._attempts, self._resume, self.enqueue_update)
            self._slots.add(slot)
            slot.task = asyncio.create_task(self._work(slot), name="ropeway-slot")
            slot.task.add_done_callback(partial(self._check, slot))

    def _check(self, slot: Slot, task: asyncio.Task[None]) -> None:
        """Ends the job of a slot whose task failed: its lock would otherwise be renewed for ever."""
        error = None if task.cancelled() else task.exception()
        if error is None:
            return
        self._abandoned.discard(slot)
        if slot in self._slots:
            self._slots.discard(slot)
            if slot.job is not None and not slot.job.ended:
                self._end(slot.job, self._attempts.outcomes.broken_off(slot.job, error))
        log.error("a slot broke off in %r", slot.job, exc_info=error)

    async def _work(self, slot: Slot) -> None:
        self._waking = False
        while not self._closed and slot in self._slots:
            await (self._run_resumed(slot) if self._resumed else self._run_ready(slot))
            if self._ready or self._resumed:
                continue
            if slot not in self._slots or len(self._slots) > self.size:
                break
            idle = asyncio.get_running_loop().create_future()
            self._idle.append(idle)
            await self._pause(idle)
            self._waking = False
        self._slots.discard(slot)
        self._abandoned.discard(slot)

    async def _run_ready(self, slot: Slot) -> None:
        """Runs jobs in a slot until none is ready, or the slot was replaced."""
        task, ready, run = slot.task, self._ready, self._attempts.run
        assert task is not None
        clock = asyncio.get_running_loop().time
        since = began = clock()
        while ready and not self._closed:
            try:
                job = ready.popleft()
            except IndexError:
                return  # Another thread took it meanwhile.
            if ready and not self._waking:
                self._wake_slot()
            if job.ended:
                continue
            job.slot = slot
            slot.job = job
            if job.timing is not None:
                job.timing.began = monotonic()
            outcome = await run(job) if job.interruption is None else _unstarted(job)
            if slot not in self._slots:
                return
            now = clock()
            if isinstance(outcome, Parkable):
                self._park(slot, outcome, began)
            else:
                self._observe(job.queue.name, now - began)
                self._end(job, outcome)
            if task.cancelling():
                await self._absorb_cancels(task, outcome)
            began = now
            if now - since > LOOP_SHARE:
                await self._pause(asyncio.sleep(0))
                since = began = clock()

    async def _run_resumed(self, slot: Slot) -> None:
        """Goes on in a slot with attempts that were parked, for a share of the loop's time at most."""
        task, clock = slot.task, asyncio.get_running_loop().time
        assert task is not None
        ends_at = clock() + LOOP_SHARE
        while self._resumed and not self._closed:
            attempt = self._resumed.popleft()
            job = attempt.job
            if (self._resumed or self._ready) and not self._waking:
                self._wake_slot()
            if job.ended:
                continue
            del self._parked[job]
            job.slot = slot
            slot.job = job
            outcome = await self._attempts.go_on(attempt)
            if slot not in self._slots:
                return
            now = clock()
            if isinstance(outcome, Parkable):
                self._park(slot, outcome, now)
            else:
                self._observe(job.queue.name, now - attempt.began)
                self._end(job, outcome)
            if task.cancelling():
                await self._absorb_cancels(task, outcome)
            if now > ends_at:
                await self._pause(asyncio.sleep(0))
                return

    def _park(self, slot: Slot, attempt: Parkable, began: float) -> None:
        """Frees the slot of an attempt until that goes on."""
        slot.job = attempt.job.slot = None
        attempt.began = attempt.began or began
        self._parked[attempt.job] = attempt

    async def _absorb_cancels(self, task: asyncio.Task[None], outcome: Outcome | Parkable | None) -> None:
        """Takes a cancel that the handler requested itself and that is still pending: it must not hit the next job."""
        was_pending = await self._pause(asyncio.sleep(0))
        _forget_cancels(task)
        if was_pending and isinstance(outcome, Parkable) and self._parked.get(outcome.job) is outcome:
            outcome.cancel()

    def _end(self, job: Job, outcome: Outcome | None = None) -> None:
        job.end()
        if job.timing is not None:
            job.timing.took = monotonic() - job.timing.began
        # In this order, so that its lock is renewed without a gap.
        self._ended(job, outcome)
        self.held.discard(job)
        if self.on_job_ended is not None:
            self.on_job_ended()
        if not self.held:
            self._emptied()

    def _emptied(self) -> None:
        self._none_held.set()
        self.on_emptied()

    async def _pause(self, wait: Awaitable[None]) -> bool:
        """Waits. True if that was cancelled."""
        try:
            await wait
        except asyncio.CancelledError:
            # A cancel that came too late for its job. The end of the slots themselves is marked by `_closed`.
            task = asyncio.current_task()
            if self._closed or task is None:
                raise
            _forget_cancels(task)
            return True
        return False


def _unstarted(job: Job) -> Outcome | None:
    """The outcome of a job that was interrupted before its handler was called."""
    return Outcome(job.id, job.token, "hand back") if job.interruption in ("shutdown", "lost") else None


def _forget_cancels(task: asyncio.Task[Any]) -> None:
    """Resets the task's cancel count, which timeouts and task groups of the next handler would misread."""
    while task.cancelling():
        task.uncancel()
