"""Claims of workers: they wait, are seen by others, and give out no job that cannot be run."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

import msgspec

from ...job.codec import decode
from ...job.failure import Failure
from ...job.instants import moment_of
from ...job.names import job_name
from ...job.outcomes import Outcome
from ...job.record import JobRecord
from ...job.wrong_values import listed
from ...store.commands import Claim, Withdraw
from ...store.values import Claimed, Lock
from ...worker.failures import INVALID_PAYLOAD
from ...worker.maintenance.presence import ORDERS_INTERVAL
from ..authentication import caller_of
from ..claim_tokens import claim_token
from ..held_jobs import failed
from ..routes import Call, Route
from ..waits import held, refuse_gone
from ..work_types import (
    ClaimedJob,
    ClaimedJobs,
    ClaimRequest,
)
from .working import lock_of


async def claim(call: Call) -> ClaimedJobs:
    asked: ClaimRequest = call.body
    limits = call.broker.limits
    worker = job_name(asked.worker)
    lock = lock_of(call, asked.timeout)
    names = None if asked.types is None else tuple(map(job_name, asked.types))
    wait = round(min(asked.wait, limits.wait) * 1000)
    queue = call.queue.name
    await call.broker.upkeep.include(queue)
    seen = await call.broker.workers.claims(worker, caller_of(call.scope).address, queue, names, asked.count)
    if seen.paused:
        await _rest(call, min(asked.wait, limits.wait, ORDERS_INTERVAL))
        return ClaimedJobs([], limits.heartbeat, lock / 1000, seen.draining)
    while True:
        request = Claim(queue, worker, claim_token(worker), asked.count, lock, names, wait=wait)
        with seen.waiting(request):
            claimed = await _claimed(call, request)
        jobs = await _startable(call, claimed.jobs)
        given = {job.id for job in jobs}
        call.broker.workers.took(worker, queue, [record for record in claimed.jobs if record.id in given], lock)
        # If all were started too often, others may wait behind them.
        if jobs or not claimed.jobs:
            return ClaimedJobs(jobs, limits.heartbeat, lock / 1000, seen.draining)


async def _rest(call: Call, seconds: float) -> None:
    """Lets a worker that gets no jobs wait before it asks again."""
    if seconds:
        end = asyncio.Event()
        _, is_gone = await held(call, _until(end, seconds), end.set)
        refuse_gone(is_gone)


async def _until(end: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await end.wait()


async def _claimed(call: Call, request: Claim) -> Claimed:
    if not request.wait:
        return await call.store.claim(request)
    ending: set[asyncio.Task[Any]] = set()

    def end() -> None:
        withdrawn = Withdraw(request.queue, request.worker, request.token)
        ending.add(asyncio.ensure_future(call.store.do(withdrawn)))

    claimed, is_gone = await held(call, call.store.claim(request), end)
    for task in ending:
        await task
    if is_gone and claimed.jobs:
        # Nobody has seen the token.
        back = [Outcome(job.id, request.token, "hand back") for job in claimed.jobs]
        await call.store.settle(request.queue, back)
    refuse_gone(is_gone)
    return claimed


async def _startable(call: Call, records: Sequence[JobRecord]) -> list[ClaimedJob]:
    """The jobs to be given out; those that cannot be, or were started too often, fail."""
    jobs: list[ClaimedJob] = []
    refused: list[Outcome] = []
    for record in records:
        facts = call.broker.held.note(record)
        most = facts.options.max_starts
        problem = None
        try:
            if most is not None and record.attempts_started > most:
                problem = f"job started more than allowable limit: max_starts is {most}"
            else:
                job = _claimed_job(record, facts.options.attempts)
                wrong = call.broker.schemas.wrong_values(record.queue, record.name, job.payload)
                if wrong:
                    problem = f"{INVALID_PAYLOAD}: {listed(wrong)}"
                else:
                    jobs.append(job)
        except msgspec.MsgspecError as damage:
            problem = f"corrupt record: {damage}"
        if problem is not None:
            lock = Lock(record.id, record.token or "")
            refused.append(failed(lock, facts, Failure(problem), retry=False))
    if refused:
        await call.store.settle(call.queue.name, refused)
    return jobs


def _claimed_job(record: JobRecord, attempts: int) -> ClaimedJob:
    assert record.token is not None, "it was claimed"
    assert record.lock_until is not None, "it was claimed"
    return ClaimedJob(
        id=record.id,
        queue=record.queue,
        type=record.name,
        payload=decode(record.data),
        token=record.token,
        attempt=record.attempts_made + 1,
        max_attempts=attempts,
        created_at=moment_of(record.created_at),
        locked_until=moment_of(record.lock_until),
        stalled_count=record.stalled_count,
        progress=None if record.progress is None else decode(record.progress),
        tags=record.tags,
        children=record.children,
    )


ROUTES: Final = (
    Route(
        "POST",
        "/v1/queues/{queue}/claim",
        claim,
        ("work",),
        "Gives waiting jobs to a worker; none is an empty list.",
        body=ClaimRequest,
        answer=ClaimedJobs,
        kind="work",
        tag="workers",
    ),
)
