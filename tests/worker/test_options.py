"""What a worker's options and durations may be."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

import pytest

from ropeway import InvalidInput, JobFailed, Keep, Queue, SyncJob, Worker
from ropeway.errors import InvalidDuration, InvalidOption
from tests.patience import PATIENCE

NO_DURATIONS: list[Any] = [
    -1,
    -0.001,
    timedelta(-1),
    math.nan,
    math.inf,
    -math.inf,
    "-1 s",
    "soon",
    "1 h 1 h",
    True,
    None,
    [],
]


async def handle(_: object) -> None: ...


@pytest.mark.parametrize("option", ["grace", "cancel_grace", "lock_duration", "stalled_interval"])
@pytest.mark.parametrize("given", NO_DURATIONS)
def test_what_is_no_duration_is_refused_by_its_option(option: str, given: Any):
    with pytest.raises(InvalidDuration, match=f"option '{option}': ") as refused:
        Worker(Queue("letters", "memory://"), handle, **{option: given})

    assert refused.value.option == option


@pytest.mark.parametrize("option", ["remove_on_complete", "remove_on_fail"])
def test_nothing_is_kept_for_less_than_no_time(option: str):
    keep: Any = Keep(age=-1)

    with pytest.raises(InvalidDuration, match=f"option '{option}': -1 is negative"):
        Worker(Queue("letters", "memory://"), handle, **{option: keep})


@pytest.mark.parametrize("queues", [5, None, "letters", [], [5], {"letters": 1}, object()])
def test_a_worker_has_queues(queues: Any):
    with pytest.raises(InvalidOption, match="give a Queue or several"):
        Worker(queues, handle)


async def test_nobody_waits_for_less_than_no_time(queue: Queue):
    job = await queue.add("send")
    worker = Worker(queue, handle)
    for call in (lambda: job.result(timeout=-1), lambda: worker.claim(wait=-1)):
        with pytest.raises(InvalidDuration, match="-1 is negative"):
            await call()
    [claimed] = await worker.claim()
    for refused in (lambda: claimed.renew(-1), lambda: claimed.delay(-1)):
        with pytest.raises(InvalidDuration, match="-1 is negative"):
            await refused()
    await claimed.complete()


async def test_a_handler_that_postpones_by_less_than_no_time_fails(queue: Queue):
    def postpone(job: SyncJob) -> None:
        job.postpone(-5)

    async with Worker(queue, postpone):
        job = await queue.add("send")
        with pytest.raises(JobFailed, match="option 'delay': -5 is negative"):
            await job.result(timeout=PATIENCE)


@pytest.mark.every_store
async def test_a_job_that_is_claimed_again_is_named(queue: Queue):
    with pytest.raises(InvalidInput):
        await Worker(queue, handle).claimed("a b", "token")
