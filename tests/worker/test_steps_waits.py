"""Waits for signals: how one ended is stored; after a `SignalTimeout`, a retry by hand begins a new wait."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from ropeway import Flow, InvalidInput, Job, JobFailed, Phase, Pipeline, Queue, SignalTimeout, Worker, in_process
from ropeway.errors import InvalidName
from ropeway.job.marks import MOST_MARKS
from tests.client.tampering import Outage, Tampering
from tests.patience import PATIENCE

from . import step_handlers
from .step_runs import Calls, echo, run
from .watching import Ear


@pytest.mark.every_store
async def test_a_second_signal_does_not_change_the_answer_of_an_earlier_attempt(queue: Queue):
    seen: list[Any] = []

    async def work(job: Job) -> None:
        seen.append(await job.wait_for("payment"))
        await queue.signal(job.id, "payment", f"after attempt {job.attempt}")
        if job.attempt < 3:
            raise RuntimeError("begin again")

    job = await queue.add("work", attempts=3)
    await queue.signal(job.id, "payment", {"first": "é"})
    async with Worker(queue, work):
        await job.result(timeout=PATIENCE)

    assert seen == [{"first": "é"}] * 3


async def test_a_signal_after_a_timeout_that_was_handled_does_not_turn_later_attempts(queue: Queue):
    seen: list[str] = []

    async def work(job: Job) -> None:
        try:
            await job.wait_for("payment", timeout=0.01)
        except SignalTimeout:
            seen.append("late")
        else:
            seen.append("paid")
        await queue.signal(job.id, "payment")
        if job.attempt == 1:
            raise RuntimeError("begin again")

    await run(queue, work, attempts=2)

    assert seen == ["late", "late"]


async def test_each_phase_has_its_own_answer(queue: Queue):
    async def wait(job: Any, ctx: Any) -> Any:
        return [*ctx.phase_results().values(), await job.wait_for("approval")]

    async def approve(job: Any, ctx: Any) -> Any:
        found = await wait(job, ctx)
        await queue.signal(job.id, "approval", 2)
        return found

    async def begin_again(job: Any, ctx: Any) -> None:
        if job.attempt == 1:
            raise RuntimeError("begin again")

    pipeline = Pipeline([Phase("one", approve), Phase("again", begin_again), Phase("two", wait)])
    job = await queue.add("work", attempts=2)
    await queue.signal(job.id, "approval", 1)
    async with Worker(queue, {"work": pipeline}):
        assert await job.result(timeout=PATIENCE) == [[1], None, 2]


async def test_a_wait_that_ended_is_not_shown_as_one(queue: Queue):
    async def work(job: Job) -> None:
        try:
            await job.wait_for("payment", timeout=0.01)
        except SignalTimeout:
            raise RuntimeError("begin again") from None

    async with Worker(queue, work) as worker:
        ear = Ear(worker, "retrying")
        job = await queue.add("work", attempts=2, backoff=3600)
        await ear.hear("retrying")
        snapshot = await job.refresh()
    assert (snapshot.state, snapshot.waits_for) == ("delayed", None)


async def convert(job: Job) -> Any:
    try:
        return await job.wait_for("paid", timeout=0.01)
    except SignalTimeout as late:
        raise ValueError("nobody paid") from late


async def convert_silently(job: Job) -> Any:
    try:
        return await job.wait_for("paid", timeout=0.01)
    except SignalTimeout:
        raise ValueError("nobody paid")  # noqa: B904 - the point


async def in_a_group(job: Job) -> Any:
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(job.wait_for("paid", timeout=0.01))
    return waiting.result()


async def as_phase(job: Any, ctx: Any) -> Any:
    return await convert(job)


@pytest.mark.parametrize(
    "handler",
    [
        convert,
        convert_silently,
        in_a_group,
        Pipeline([Phase("only", as_phase)]),
        in_process(step_handlers.wait_in_vain),
        in_process(step_handlers.wait_and_convert),
    ],
    ids=["from", "while", "group", "phase", "process", "process, from"],
)
async def test_a_retry_by_hand_waits_again_however_the_timeout_left_the_handler(queue: Queue, handler: Any):
    async with Worker(queue, {"work": handler}) as worker:
        ear = Ear(worker, "delayed", "failed")
        job = await queue.add("work")
        await ear.hear("failed")
        await job.retry()
        await ear.hear("failed", 2)

    assert ear.names == ["delayed", "failed", "delayed", "failed"]


async def test_classify_may_retry_a_timeout_in_a_process(queue: Queue):
    async with Worker(
        queue,
        in_process(step_handlers.wait_in_vain),
        classify=lambda error, job: "retry" if isinstance(error, SignalTimeout) else None,
    ):
        job = await queue.add("work", attempts=2)
        with pytest.raises(JobFailed, match="SignalTimeout: no signal 'paid' came"):
            await job.result(timeout=PATIENCE)
    assert (await job.refresh()).attempts_made == 2


async def test_a_wait_without_a_timeout_takes_room_too(queue: Queue):
    async def work(job: Job) -> str:
        await asyncio.gather(*(job.step(f"step-{number}", Calls()) for number in range(MOST_MARKS)))
        with pytest.raises(InvalidInput, match="at most 1,000"):
            await job.wait_for("payment")
        return "went on"

    assert await run(queue, work) == "went on"


async def test_a_sleep_cannot_have_the_name_of_one_without_a_name(queue: Queue):
    async def work(job: Job) -> str:
        with pytest.raises(InvalidName, match="begin with #"):
            await job.sleep(60, name="#1")
        await job.step("#1", Calls())
        return "went on"

    assert await run(queue, work) == "went on"


@pytest.mark.parametrize(
    ("verb", "call"),
    [
        ("clock", lambda job: job.sleep(0.01)),
        ("clock", lambda job: job.wait_for("paid", timeout=0)),
        ("children", lambda job: job.gather(Flow("echo", "paid"))),
        ("children", lambda job: job.wait_for_children()),
    ],
    ids=["sleep", "wait", "gather", "children"],
)
async def test_a_short_outage_does_not_fail_them(tampered_queue: Queue, tampering: Tampering, verb: str, call: Any):
    async def work(job: Job) -> str:
        if not done:
            tampering.before[verb] = Outage(2)
            done.append(verb)
        with suppress(SignalTimeout):
            await call(job)
        return "went on"

    done: list[str] = []
    async with Worker(tampered_queue, {"work": work, "echo": echo}):
        job = await tampered_queue.add("work")
        assert await job.result(timeout=PATIENCE) == "went on"
    assert tampering.calls[verb] > 2
