"""Jobs that are not started in time fail."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ropeway import Job, JobFailed, Queue, Worker
from ropeway.errors import InvalidDuration, InvalidOption
from ropeway.job.failure import EXPIRED_REASON
from ropeway.job.instants import instant_of
from ropeway.store.values import StallRules
from ropeway.testing.factories import DAY, MINUTE
from tests.patience import PATIENCE
from tests.worker.watching import told

from .fixtures import MakeQueue

LATER = datetime.now(UTC).replace(microsecond=0) + timedelta(days=30)


@pytest.mark.every_store
async def test_a_job_that_is_not_started_in_time_fails_with_that_reason(queue: Queue):
    ran: list[str] = []

    async def note(job: Job) -> None:
        ran.append(job.id)

    job = await queue.add("send", expires=datetime.now(UTC) - timedelta(seconds=1))
    async with Worker(queue, note):
        with pytest.raises(JobFailed, match=EXPIRED_REASON):
            await job.result(timeout=PATIENCE)
    await told(queue, "expired", job)

    assert ran == []


@pytest.mark.every_store
async def test_the_sweep_fails_it_also_if_nobody_claims(queue: Queue):
    job = await queue.add("send", expires="1 minute")
    ticked = await queue.store.tick(queue.name, StallRules(), now=await queue.store.clock() + 2 * MINUTE)

    assert ticked.expired == 1
    assert (await job.refresh()).reason == EXPIRED_REASON


@pytest.mark.every_store
async def test_one_that_was_started_in_time_goes_on(queue: Queue):
    job = await queue.add("send", expires="1 minute")
    [held] = await Worker(queue).claim()
    await queue.store.tick(queue.name, StallRules(), now=await queue.store.clock() + 20_000)

    assert await job.state() == "active"
    await held.complete()


async def test_it_counts_from_the_add_also_while_it_is_delayed(queue: Queue):
    job = await queue.add("send", expires="1 minute", delay="1 day")
    await queue.store.tick(queue.name, StallRules(), now=await queue.store.clock() + 2 * MINUTE)

    assert await job.state() == "failed"


async def test_when_it_expires_is_shown(queue: Queue):
    by_instant = await (await queue.add("send", expires=LATER)).refresh()
    by_duration = await (await queue.add("send", expires="1 day")).refresh()

    assert by_instant.start_by == LATER
    assert by_duration.start_by is not None
    assert instant_of(by_duration.start_by) == instant_of(by_duration.created_at) + DAY


@pytest.mark.every_store
async def test_an_expired_job_leaves_a_dead_letter(queue: Queue, make_queue: MakeQueue):
    job = await queue.add("send", expires="1 minute", dead_letter="graves")
    await queue.store.tick(queue.name, StallRules(), now=await queue.store.clock() + 2 * MINUTE)
    [letter] = (await make_queue("graves").find()).jobs

    origin = letter.snapshot.origin
    assert origin is not None
    assert (origin.id, origin.reason) == (job.id, EXPIRED_REASON)


@pytest.mark.parametrize(
    ("expires", "error"),
    [
        (0, InvalidOption),
        (-1, InvalidDuration),
        ("soon", InvalidDuration),
        (True, InvalidDuration),
        (datetime(2026, 1, 1), InvalidDuration),  # noqa: DTZ001 - it is refused
    ],
)
async def test_what_is_no_time_is_refused(queue: Queue, expires: Any, error: type[Exception]):
    with pytest.raises(error, match=r"expires|no time zone"):
        await queue.add("send", expires=expires)
