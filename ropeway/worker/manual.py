"""Manual processing: claiming, renewing and settling jobs without a running worker."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

import msgspec

from ..client.new_jobs import reason_text
from ..client.queue import Queue
from ..errors import (
    HandlerError,
    InvalidOption,
    JobError,
    JobFinished,
    JobNotFound,
    LockLost,
    Postponed,
    RopewayError,
    StoreUnavailable,
)
from ..job.codec import Json, encode
from ..job.durations import Duration, milliseconds
from ..job.failure import UNKNOWN_REASON, Failure
from ..job.ids import new_token
from ..job.names import job_id, job_name
from ..job.numbers import whole
from ..job.options import StoredOptions
from ..job.outcomes import Outcome
from ..job.record import JobRecord
from ..showing import shown
from ..store.commands import Claim
from ..store.values import BATCH, Answer, JobUpdate, Lock, StallRules, Ticked
from .completing import is_completing
from .failures import HandlerFailed
from .job import Job
from .job_run import JobRun
from .maintenance.firing import fire_schedules
from .options import Rules
from .outcome_rules import OutcomeRules, started_too_often
from .service import log
from .sync import SyncClaimedJob


class ClaimedJobRun(JobRun):
    """The run of a job that no worker runs."""

    __slots__ = ("_outcomes",)

    def __init__(self, job: ClaimedJob, outcomes: OutcomeRules) -> None:
        super().__init__(job)
        self._outcomes = outcomes

    def _may_retry(self, error: BaseException) -> bool:
        return self._outcomes.may_retry(self._job, error)

    async def _send(self, change: JobUpdate) -> Answer:
        # The caller decides how long to wait for a store that cannot be reached.
        queue = self._job.queue
        [answer] = await queue.store.update(queue.name, [change])
        return answer


class ClaimedJob(Job):
    """A job claimed manually. Nothing renews its lock for you; complete, fail, delay and release give it up."""

    __slots__ = ("_lock", "_outcomes")

    def __init__(self, queue: Queue, record: JobRecord, confirmed: float, rules: Rules) -> None:
        super().__init__(queue, record, confirmed)
        try:
            self.options = record.read_options()
        except msgspec.MsgspecError:
            # Damaged: it can be read and failed, but is not retried.
            self.options = StoredOptions()
            self.discarded = True
        self.keep = self.options.keep_completed or rules.keep_completed
        self._outcomes = OutcomeRules(rules)
        self._lock = rules.lock
        self._run = ClaimedJobRun(self, self._outcomes)

    @property
    def sync(self) -> SyncClaimedJob:
        """The same job for code without an event loop."""
        return SyncClaimedJob(self)

    async def renew(self, duration: Duration | None = None) -> None:
        """Extends the lock, by the worker's `lock_duration` from now unless another is given."""
        lock = self._lock if duration is None else milliseconds(duration, "duration")
        [answer] = await self.queue.store.renew(self.queue.name, [Lock(self.id, self.token)], lock)
        if answer.verdict != "done":
            raise LockLost(self.queue.name, self.id)

    async def complete(self, result: Json = None) -> None:
        """Completes the job. A result that is not JSON is refused, and nothing changes."""
        text = None if result is None else encode(result, "result", self.queue.size_limit)
        await self._settle(Outcome(self.id, self.token, "complete", text, keep=self.keep))

    async def fail(self, error: BaseException | str) -> None:
        """Records a failed attempt; the job's own `attempts` and `backoff` decide whether it is retried."""
        if not isinstance(error, BaseException):
            error = HandlerFailed(Failure(reason_text(error) or UNKNOWN_REASON))
        await self._settle(await self._outcomes.of_error(self, error))

    async def delay(self, delay: Duration) -> None:
        """Gives the job back, to be claimed after the delay; uses no attempt."""
        await self._settle(await self._outcomes.of_error(self, Postponed(milliseconds(delay, "delay"))))

    async def release(self) -> None:
        """Gives the job back at once; uses no attempt."""
        await self._settle(Outcome(self.id, self.token, "hand back"))

    async def _give_back(self, postponed: Postponed) -> None:
        """`wait_for_children`, `sleep` and `wait_for` give the job back, to be claimed then, and raise `Postponed`."""
        await self._settle(await self._outcomes.of_error(self, postponed))
        raise postponed

    async def _settle(self, outcome: Outcome | None) -> None:
        assert outcome is not None
        if self.ended or is_completing(self):
            raise JobFinished(self.queue.name, self.id)
        settled = await self.queue.store.settle(self.queue.name, [outcome])
        if settled.answers[0].verdict != "done":
            raise LockLost(self.queue.name, self.id)
        self.ended = True


Claiming: TypeAlias = tuple[list[ClaimedJob], float]
_giving_back: set[asyncio.Task[None]] = set()
"""Strong references: an event loop alone does not keep its tasks alive."""


class Sweeps:
    """Times of the last recovery of stalled jobs, per queue.

    Where all jobs are claimed manually, no worker ticks the queue: stalled jobs would stay active for ever, and no
    schedule would fire.
    """

    def __init__(self, interval: float) -> None:
        self._interval = interval
        self._last: dict[str, float] = {}

    def is_due(self, queue: str) -> bool:
        return time.monotonic() - self._last.get(queue, -math.inf) >= self._interval

    async def sweep(self, queue: Queue, stalls: StallRules) -> Ticked:
        ticked = await queue.store.tick(queue.name, stalls)
        self._last[queue.name] = time.monotonic()
        if ticked.schedules:
            await fire_schedules(queue.store, queue.name, ticked.schedules, ticked.now)
        return ticked


async def claim_by_hand(
    queues: Sequence[Queue],
    worker: str,
    names: tuple[str, ...] | None,
    limit: int,
    rules: Rules,
    sweeps: Sweeps,
    wait: Duration | None,
) -> list[ClaimedJob]:
    limit = whole("limit", limit, 1, BATCH)
    loop = asyncio.get_running_loop()
    until = loop.time() + (0 if wait is None else milliseconds(wait, "wait") / 1000)
    listeners = [queue.store.listen("jobs", [queue.name]) for queue in queues] if wait else []
    try:
        while True:
            claim = _claim_once(queues, worker, names or None, limit, rules, sweeps)
            jobs, again_in = await _claim_or_give_back(claim)
            left = until - loop.time()
            if jobs or left <= 0:
                return jobs
            pause = min(left, again_in, 5.0)
            waits = [asyncio.ensure_future(listener.wait(pause)) for listener in listeners]
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for pending in waits:
                    pending.cancel()
                await asyncio.wait(waits)
    finally:
        for listener in listeners:
            listener.close()


async def _claim_or_give_back(claim: Coroutine[Any, Any, Claiming]) -> Claiming:
    """If cancelled, it ends at once, and the jobs that the claim still brings are released in the background."""
    claiming = asyncio.ensure_future(claim)
    try:
        return await asyncio.shield(claiming)
    except asyncio.CancelledError:
        task = asyncio.ensure_future(_give_back(claiming))
        _giving_back.add(task)
        task.add_done_callback(_giving_back.discard)
        raise


async def _give_back(claiming: asyncio.Task[Claiming]) -> None:
    jobs: list[ClaimedJob] = []
    with suppress(RopewayError):
        jobs, _ = await claiming
    for job in jobs:
        # A job that cannot be released now stalls, and is recovered then.
        with suppress(RopewayError):
            await job.release()


async def claimed_before(queues: Sequence[Queue], id: str, token: str, rules: Rules) -> ClaimedJob:
    missing: JobError = JobNotFound(queues[0].name, job_id(id))
    for queue in queues:
        [record] = await queue.store.get(queue.name, [id])
        if record is None:
            continue
        if record.state == "active" and record.token == token:
            return ClaimedJob(queue, record, time.monotonic(), rules)
        missing = LockLost(queue.name, id)
    raise missing


def names_to_claim(given: Iterable[str]) -> tuple[str, ...]:
    names = () if isinstance(given, str) or not isinstance(given, Iterable) else tuple(map(job_name, given))
    if not names:
        raise InvalidOption("names", f"cannot be {shown(given)}: give a list of job names, or leave it out for all")
    return names


async def _claim_once(
    queues: Sequence[Queue],
    worker: str,
    names: tuple[str, ...] | None,
    limit: int,
    rules: Rules,
    sweeps: Sweeps,
) -> Claiming:
    """The jobs claimed now, and the seconds until one of the queues may have more."""
    jobs: list[ClaimedJob] = []
    again_in = 60.0
    for queue in queues:
        request = Claim(queue.name, worker, new_token(), limit - len(jobs), rules.lock, names)
        try:
            found, again = await _claim_in(queue, request, rules, sweeps)
        except StoreUnavailable:
            if jobs:
                # Jobs of another store are claimed already: better some jobs than none.
                break
            raise
        jobs += found
        again_in = min(again_in, again)
        if len(jobs) == limit:
            break
    return jobs, again_in


async def _claim_in(queue: Queue, request: Claim, rules: Rules, sweeps: Sweeps) -> Claiming:
    while True:
        records, again_in = await _take(queue, request, rules, sweeps)
        jobs = [ClaimedJob(queue, record, time.monotonic(), rules) for record in records]
        spent = {job: refusal for job in jobs if (refusal := started_too_often(job)) is not None}
        allowed = [job for job in jobs if job not in spent]
        if spent:
            await _fail(queue, rules, spent)
        if allowed or not spent:
            return allowed, again_in
        # Others may wait behind them.
        request = msgspec.structs.replace(request, token=new_token())


async def _take(queue: Queue, request: Claim, rules: Rules, sweeps: Sweeps) -> tuple[Sequence[JobRecord], float]:
    again_in = 60.0
    if sweeps.is_due(queue.name):
        # Before the claim: if it fails, no job is claimed by then.
        await sweeps.sweep(queue, rules.stalls_in(queue))
    claimed = await queue.store.claim(request)
    if not claimed.jobs:
        ticked = await sweeps.sweep(queue, rules.stalls_in(queue))
        if ticked.next_at is not None:
            again_in = min(again_in, max(0.01, (ticked.next_at - ticked.now) / 1000))
        if ticked.stalled:
            claimed = await queue.store.claim(msgspec.structs.replace(request, token=new_token()))
    if claimed.again_in is not None:
        again_in = min(again_in, max(0.001, claimed.again_in))
    return claimed.jobs, again_in


async def _fail(queue: Queue, rules: Rules, spent: Mapping[ClaimedJob, HandlerError]) -> None:
    decide = OutcomeRules(rules).of_error
    outcomes = [await decide(job, refusal) for job, refusal in spent.items()]
    try:
        await queue.store.settle(queue.name, list(filter(None, outcomes)))
    except RopewayError as error:
        # They stall, and are failed later. The caller gets the other jobs all the same.
        log.warning("%d jobs of %r that were started too often could not be failed: %s", len(spent), queue.name, error)
