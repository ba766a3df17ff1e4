"""Sleeps, waits and gathers beside other calls: in task groups, and beside steps that run."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import Any

import pytest

from ropeway import Flow, Job, JobFailed, Phase, Pipeline, Queue, SignalTimeout, Worker, in_process
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


class Charge:
    """A step that goes on until it is let go, beside one that fails once."""

    def __init__(self) -> None:
        self.calls = 0
        self.begun, self.let_go, self.failed = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.let_thread_go = threading.Event()
        self._loop = asyncio.get_running_loop()

    async def on_loop(self) -> int:
        self._begin()
        await self.let_go.wait()
        return self.calls

    def blocking(self) -> int:
        self._loop.call_soon_threadsafe(self._begin)
        assert self.let_thread_go.wait(PATIENCE)
        return self.calls

    def _begin(self) -> None:
        self.calls += 1
        self.begun.set()

    async def fail_once(self) -> None:
        await self.begun.wait()
        if not self.failed.is_set():
            self.failed.set()
            raise ConnectionError("try again")

    def release(self) -> None:
        self.let_go.set()
        self.let_thread_go.set()


async def at_once(job: Job, charge: Charge, function: Any) -> Any:
    found, _ = await asyncio.gather(job.step("charge", function), job.step("mail", charge.fail_once))
    return found


@pytest.mark.parametrize("place", ["on_loop", "blocking"])
async def test_a_step_beside_one_that_fails_is_stored_before_the_next_attempt(queue: Queue, place: str):
    charge = Charge()

    async def work(job: Job) -> Any:
        return await at_once(job, charge, getattr(charge, place))

    async with Worker(queue, work):
        job = await queue.add("work", attempts=2)
        await charge.failed.wait()
        assert await job.state() == "active"
        charge.release()
        assert await job.result(timeout=PATIENCE) == 1
    assert charge.calls == 1


async def test_also_before_another_try_of_its_phase(queue: Queue):
    charge = Charge()

    async def pay(job: Job, ctx: Any) -> Any:
        asyncio.get_running_loop().call_later(0.02, charge.release)
        return await at_once(job, charge, charge.on_loop)

    assert await run(queue, Pipeline([Phase("pay", pay, attempts=2)])) == 1
    assert charge.calls == 1


async def test_a_step_that_runs_when_the_handler_returns_is_stored_before_the_job_completes(queue: Queue):
    charge = Charge()
    tasks: list[asyncio.Task[int]] = []

    async def work(job: Job) -> None:
        tasks.append(asyncio.create_task(job.step("charge", charge.on_loop)))
        await charge.begun.wait()
        asyncio.get_running_loop().call_later(0.02, charge.release)

    async with Worker(queue, work):
        job = await queue.add("work")
        await job.result(timeout=PATIENCE)
    assert [step.name for step in (await job.refresh()).steps] == ["charge"]


async def test_or_its_phase(queue: Queue):
    charge = Charge()
    tasks: list[asyncio.Task[int]] = []

    async def pay(job: Job, ctx: Any) -> None:
        tasks.append(asyncio.create_task(job.step("charge", charge.on_loop)))
        await charge.begun.wait()
        asyncio.get_running_loop().call_later(0.02, charge.release)

    async def look(job: Job, ctx: Any) -> list[str]:
        return [step.name for step in (await job.refresh()).steps]

    assert await run(queue, Pipeline([Phase("pay", pay), Phase("look", look)])) == ["charge"]


@pytest.mark.parametrize("is_pipeline", [False, True])
async def test_a_timeout_ends_the_wait_for_them(queue: Queue, is_pipeline: bool):
    charge = Charge()

    async def work(job: Job, *_: Any) -> Any:
        return await at_once(job, charge, charge.on_loop)

    with pytest.raises(JobFailed, match="ConnectionError: try again"):
        await run(queue, Pipeline([Phase("pay", work)]) if is_pipeline else work, timeout=0.1)


@pytest.mark.every_store
@pytest.mark.parametrize("is_pipeline", [False, True])
async def test_a_cancel_too(queue: Queue, is_pipeline: bool):
    charge = Charge()

    async def work(job: Job, *_: Any) -> Any:
        return await at_once(job, charge, charge.on_loop)

    worker = Worker(queue, {"work": Pipeline([Phase("pay", work)]) if is_pipeline else work})
    async with worker:
        job = await queue.add("work")
        await charge.failed.wait()
        await job.cancel()
        async with asyncio.timeout(PATIENCE):
            await worker.idle()
    assert await job.state() == "cancelled"
