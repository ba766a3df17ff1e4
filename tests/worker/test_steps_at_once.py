"""Sleeps, waits and gathers beside other calls: in task groups, and beside steps that run."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from ropeway import Flow, Job, JobFailed, Queue, SignalTimeout, Worker, in_process
from ropeway.errors import Postponed
from tests.patience import PATIENCE

from . import step_handlers
from .step_runs import Calls, echo, run


async def in_vain(waiting: Any) -> None:
    with suppress(SignalTimeout):
        await waiting


CALLS = pytest.mark.parametrize(
    "call",
    [
        lambda job: job.sleep(0.05),
        lambda job: in_vain(job.wait_for("paid", timeout=0.05)),
        lambda job: job.gather(Flow("echo", 1, delay=0.05)),
    ],
    ids=["sleep", "wait", "gather"],
)


@CALLS
async def test_a_task_group_gives_the_job_back(queue: Queue, call: Any):
    async def work(job: Job) -> int:
        async with asyncio.TaskGroup() as group:
            group.create_task(call(job))
        return job.attempt

    assert await run(queue, work) == 1


async def test_a_task_group_in_a_process(queue: Queue):
    assert await run(queue, in_process(step_handlers.sleep_in_a_group)) == 2


async def test_several_that_leave_together(queue: Queue):
    """The job goes on when the first of them may, and ends when all have ended."""

    async def work(job: Job) -> Any:
        async with asyncio.TaskGroup() as outer:
            outer.create_task(job.sleep(0.02))
            waiting = outer.create_task(job.wait_for("paid"))
            children = outer.create_task(job.gather(Flow("echo", 1)))
        return [waiting.result(), children.result()]

    async with Worker(queue, {"work": work, "echo": echo}):
        job = await queue.add("work")
        await queue.signal(job.id, "paid", 5)
        assert await job.result(timeout=PATIENCE) == [5, [1]]


@pytest.mark.parametrize(
    ("group", "kind"),
    [
        (BaseExceptionGroup("", [Postponed(1), ValueError("broken")]), "ExceptionGroup"),
        (BaseExceptionGroup("", [BaseExceptionGroup("", [Postponed(1)]), SystemExit()]), "BaseExceptionGroup"),
    ],
)
async def test_another_error_in_the_group_counts(queue: Queue, group: BaseException, kind: str):
    async def work(job: Job) -> None:
        raise group

    with pytest.raises(JobFailed, match=rf"failed: {kind}:  \(1 sub-exception\)"):
        await run(queue, work)


@pytest.mark.every_store
async def test_a_sleep_waits_for_steps_that_run_beside_it(queue: Queue):
    calls = Calls()

    async def slow(value: int) -> Any:
        await asyncio.sleep(0.02)
        return await calls(value)

    async def work(job: Job) -> Any:
        first, _, second = await asyncio.gather(
            job.step("first", slow, 1), job.sleep(0.05), job.step("second", slow, 2)
        )
        return [first, second]

    assert await run(queue, work) == [1, 2]
    assert calls.seen == {1: 1, 2: 1}


@CALLS
async def test_so_do_all_of_them_in_a_task_group(queue: Queue, call: Any):
    calls = Calls()

    async def slow() -> Any:
        await asyncio.sleep(0.02)
        return await calls(1)

    async def work(job: Job) -> Any:
        async with asyncio.TaskGroup() as group:
            step = group.create_task(job.step("first", slow))
            group.create_task(call(job))
        return step.result()

    assert await run(queue, work) == 1
    assert calls.seen == {1: 1}


async def test_a_sleep_that_is_over_when_the_steps_end_goes_on(queue: Queue):
    async def work(job: Job) -> int:
        await asyncio.gather(job.step("slow", asyncio.sleep, 0.05), job.sleep(0.01))
        return job.record.attempts_started

    assert await run(queue, work) == 1


async def test_a_step_whose_function_sleeps_does_not_wait_for_itself(queue: Queue):
    async def work(job: Job) -> Any:
        async def nap(name: str) -> str:
            await job.sleep(0.01, name=name)
            return name

        return await asyncio.gather(job.step("a", nap, "a"), job.step("b", nap, "b"))

    assert await run(queue, work) == ["a", "b"]
