"""Steps that fail for good: their failure is stored, and is the answer in every later attempt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ropeway import Job, JobFailed, Phase, Pipeline, Queue, StepFailed, SyncJob, Unrecoverable, Worker, in_process
from tests.patience import PATIENCE

from . import step_handlers
from .step_runs import Calls, run


class CardDeclinedError(Unrecoverable):
    pass


class Decline:
    """A function that declines, so many times; it counts its calls."""

    def __init__(self, times: int = 1000) -> None:
        self.calls = 0
        self.times = times

    def blocking(self) -> str:
        self.calls += 1
        if self.calls <= self.times:
            raise CardDeclinedError("no money")
        return "paid"

    async def on_loop(self) -> str:
        return self.blocking()


@pytest.mark.every_store
async def test_a_handler_that_caught_it_goes_the_same_way_in_every_attempt(queue: Queue):
    decline, letters = Decline(1), Calls()

    async def work(job: Job) -> str:
        try:
            found = await job.step("charge", decline.on_loop)
        except StepFailed as failed:
            found = f"{failed.step}: {failed.reason}"
            await job.step("letter", letters)
        await job.sleep(0.01)
        if job.attempt == 1:
            raise ConnectionError("begin again")
        return found

    assert await run(queue, work, attempts=2) == "charge: CardDeclinedError: no money"
    assert decline.calls == 1
    assert letters.seen.total() == 1


async def test_in_a_thread(queue: Queue):
    decline = Decline(1)

    def work(job: SyncJob) -> str:
        try:
            found = job.step("charge", decline.blocking)
        except StepFailed as failed:
            found = str(failed)
        job.sleep(0.01)
        return found

    assert await run(queue, work) == "step 'charge' failed: CardDeclinedError: no money"
    assert decline.calls == 1


async def test_in_a_process(queue: Queue, tmp_path: Path):
    notes = tmp_path / "notes"

    assert await run(queue, in_process(step_handlers.charge_in_vain), str(notes)) == "Unrecoverable: no money"
    assert notes.read_text() == "tried\n"


async def test_it_is_not_tried_again_in_its_place(queue: Queue):
    decline = Decline()

    async def work(job: Job) -> None:
        await job.step("charge", decline.on_loop, attempts=3)

    with pytest.raises(JobFailed, match="StepFailed: step 'charge' failed: CardDeclinedError: no money"):
        await run(queue, work, attempts=3)
    assert decline.calls == 1


async def test_it_is_shown(queue: Queue):
    async def work(job: Job) -> None:
        with pytest.raises(StepFailed):
            await job.step("charge", Decline().on_loop)

    async with Worker(queue, work):
        job = await queue.add("work")
        await job.result(timeout=PATIENCE)

    [step] = (await job.refresh()).steps
    assert (step.name, step.result, step.reason) == ("charge", None, "CardDeclinedError: no money")


async def directly(job: Job, decline: Decline) -> Any:
    return await job.step("charge", decline.on_loop)


async def behind_another_error(job: Job, decline: Decline) -> Any:
    try:
        return await job.step("charge", decline.on_loop)
    except StepFailed as failed:
        raise Unrecoverable("the customer is gone") from failed


@pytest.mark.parametrize("handler", [directly, behind_another_error])
async def test_a_retry_by_hand_runs_the_step_that_failed_the_job_again(queue: Queue, handler: Any):
    decline = Decline(1)

    async def work(job: Job) -> Any:
        return await handler(job, decline)

    async with Worker(queue, work):
        job = await queue.add("work")
        with pytest.raises(JobFailed):
            await job.result(timeout=PATIENCE)
        await job.retry()
        assert await job.result(timeout=PATIENCE) == "paid"


async def test_a_retry_by_hand_of_one_in_a_process(queue: Queue, tmp_path: Path):
    notes = tmp_path / "notes"
    async with Worker(queue, in_process(step_handlers.charge)):
        job = await queue.add("work", str(notes))
        with pytest.raises(JobFailed, match="StepFailed: step 'charge' failed: Unrecoverable: no money"):
            await job.result(timeout=PATIENCE)
        await job.retry()
        assert await job.result(timeout=PATIENCE) == "paid"


async def test_a_retry_by_hand_of_one_in_a_phase(queue: Queue):
    decline = Decline(1)

    async def pay(job: Job, ctx: Any) -> str:
        return await job.step("charge", decline.on_loop)

    async with Worker(queue, {"work": Pipeline([Phase("pay", pay, attempts=3)])}):
        job = await queue.add("work")
        with pytest.raises(JobFailed):
            await job.result(timeout=PATIENCE)
        assert decline.calls == 1
        await job.retry()
        assert await job.result(timeout=PATIENCE) == "paid"


async def test_a_failure_that_was_caught_stays_when_the_job_fails_by_what_came_after(queue: Queue):
    decline, letters = Decline(1), Calls("letter")

    async def work(job: Job) -> str:
        try:
            return await job.step("charge", decline.on_loop)
        except StepFailed:
            return str(await job.step("letter", letters, "letter"))

    async with Worker(queue, work):
        job = await queue.add("work")
        with pytest.raises(JobFailed, match="letter failed"):
            await job.result(timeout=PATIENCE)
        await job.retry()
        assert await job.result(timeout=PATIENCE) == "letter"
    assert decline.calls == 1


async def test_a_trace_leads_from_the_handler_to_the_step_and_not_through_the_worker(queue: Queue):
    def charge() -> None:
        raise ValueError("declined")

    async def on_loop(job: Job) -> None:
        await job.step("charge", charge)

    def in_thread(job: SyncJob) -> None:
        job.step("charge", charge)

    async with Worker(queue, {"loop": on_loop, "thread": in_thread}):
        for name in ("loop", "thread"):
            job = await queue.add(name)
            with pytest.raises(JobFailed):
                await job.result(timeout=PATIENCE)
            [failure] = (await queue.history(job.id)).failures
            assert failure.trace.count('  File "') == 2
            assert failure.trace.count(__file__) == 2
            assert "raise ValueError" in failure.trace
