"""How long finished jobs are kept: what a job or its queue says counts, then what the worker says."""

from __future__ import annotations

from contextlib import suppress

import pytest

from ropeway import InvalidInput, Job, JobFailed, JobHandle, Keep, Queue, Worker
from ropeway.job.retention import KEEP_FAILED
from tests.client.fixtures import MakeQueue
from tests.client.ledgers import Ledger, ledger
from tests.patience import PATIENCE

from .watching import told

__all__ = ["ledger"]

HOUR = 3_600_000


async def handle(job: Job) -> None:
    if job.name == "fail":
        raise ValueError("no luck")


@pytest.mark.every_store
async def test_a_worker_says_it_for_jobs_that_do_not(queue: Queue):
    async with Worker(queue, handle, remove_on_complete=Keep(age="1h"), remove_on_fail=Keep(age="2h")):
        jobs = [await queue.add("send"), await queue.add("fail")]
        assert await _kept(queue, *jobs) == [HOUR, 2 * HOUR]


async def test_what_a_job_says_counts_more_even_if_it_is_the_default(queue: Queue):
    async with Worker(queue, handle, remove_on_complete=True, remove_on_fail=True):
        sent = await queue.add("send", remove_on_complete=Keep(age="3h"))
        failed = await queue.add("fail", remove_on_fail=Keep(age="7 days"))
        assert await _kept(queue, sent, failed) == [3 * HOUR, KEEP_FAILED.age]


async def test_what_a_queue_says_counts_more(make_queue: MakeQueue):
    queue = make_queue("mail", remove_on_complete=Keep(age="3h"))
    async with Worker(queue, handle, remove_on_complete=True):
        assert await _kept(queue, await queue.add("send")) == [3 * HOUR]


async def test_it_holds_for_jobs_that_a_transaction_completes(ledger: Ledger):
    async def pay(job: Job) -> None:
        async with job.transaction() as tx:
            await tx.execute(ledger.insert, ("paid",))

    async with Worker(ledger.queue, pay, remove_on_complete=Keep(age="1h")):
        assert await _kept(ledger.queue, await ledger.queue.add("pay")) == [HOUR]


@pytest.mark.every_store
async def test_it_holds_for_claims_by_hand(queue: Queue):
    worker = Worker(queue, remove_on_complete=Keep(age="1h"), remove_on_fail=Keep(age="2h"))
    jobs = [await queue.add("send"), await queue.add("send")]
    first, second = await worker.claim(2)
    await first.complete()
    await second.fail("no luck")
    assert await _kept(queue, *jobs) == [HOUR, 2 * HOUR]


async def test_jobs_can_be_removed_at_once(queue: Queue):
    async with Worker(queue, handle, remove_on_complete=True):
        job = await queue.add("send")
        await told(queue, "removed", job)
        assert await queue.get(job.id) is None


@pytest.mark.parametrize("option", ["remove_on_complete", "remove_on_fail"])
@pytest.mark.parametrize("given", [-1, "1h", 1.5, None])
async def test_what_cannot_be_meant_is_refused(queue: Queue, option: str, given: object):
    with pytest.raises(InvalidInput, match=option):
        Worker(queue, handle, **{option: given})  # type: ignore[arg-type]


async def _kept(queue: Queue, *jobs: JobHandle) -> list[int]:
    """For how many milliseconds each is kept after its end."""
    times = []
    for job in jobs:
        with suppress(JobFailed):
            await job.result(timeout=PATIENCE)
        [record] = await queue.store.get(queue.name, [job.id])
        assert record is not None
        times.append((record.expires_at or 0) - (record.finished_at or 0))
    return times
