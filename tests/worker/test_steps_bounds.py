"""How many steps a job may have, and how large they may be, however they are called."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ropeway import InvalidInput, Job, Queue, Worker
from ropeway.errors import StoreRefused
from ropeway.job.marks import MARKS_LIMIT, MOST_MARKS
from tests.client.tampering import Tampering
from tests.patience import PATIENCE

from .step_runs import Calls, run


async def stored_and_refused(
    queue: Queue, calls: list[tuple[str, Any]], *, at_once: bool
) -> tuple[int, list[BaseException]]:
    """The number of stored steps, and the errors of the others."""
    refused: list[BaseException] = []

    async def call(job: Job, name: str, value: Any) -> None:
        try:
            await job.step(name, Calls(), value)
        except Exception as error:  # noqa: BLE001 - the test looks at them
            refused.append(error)

    async def work(job: Job) -> None:
        if at_once:
            await asyncio.gather(*(call(job, *each) for each in calls))
        else:
            for each in calls:
                await call(job, *each)

    async with Worker(queue, work):
        job = await queue.add("work")
        await job.result(timeout=PATIENCE)
    return len((await job.refresh()).steps), refused


@pytest.mark.parametrize("at_once", [True, False], ids=["at once", "one by one"])
async def test_more_steps_than_a_job_may_have(queue: Queue, at_once: bool):
    calls = [(f"step-{number}", number) for number in range(MOST_MARKS + (500 if at_once else 2))]
    done, refused = await stored_and_refused(queue, calls, at_once=at_once)

    assert (done, len(refused)) == (MOST_MARKS, len(calls) - MOST_MARKS)
    assert {type(error) for error in refused} == {InvalidInput}
    assert "at most 1,000 steps, sleeps, waits, gathers, phases and signals" in str(refused[0])


@pytest.mark.parametrize("at_once", [True, False], ids=["at once", "one by one"])
async def test_more_bytes_than_they_may_have(queue: Queue, at_once: bool):
    calls = [(f"step-{number}", "x" * 1_000_000) for number in range(12)]
    done, refused = await stored_and_refused(queue, calls, at_once=at_once)

    assert (done, len(refused)) == (8, 4)
    assert {type(error) for error in refused} == {InvalidInput}
    assert f"at most {MARKS_LIMIT:,} bytes in all" in str(refused[0])


async def test_a_step_that_could_not_be_written_takes_no_room(tampered_queue: Queue, tampering: Tampering):
    def refuse(*_: object) -> None:
        raise StoreRefused("tampered", "not now")

    async def work(job: Job) -> int:
        large = "x" * 1_000_000
        for number in range(10):
            tampering.before["update"] = refuse
            with pytest.raises(StoreRefused):
                await job.step(f"refused-{number}", Calls(), large)
            del tampering.before["update"]
        for number in range(8):
            await job.step(f"step-{number}", Calls(), large)
        return 8

    assert await run(tampered_queue, work) == 8
