"""A handler that blocks its worker's loop: what others can do is done by others, and the worker can be ended."""

from __future__ import annotations

import pytest

from ropeway import JobHandle, Queue
from ropeway.worker.exit_codes import BLOCKED_LOOP
from tests.patience import PATIENCE

from .chronicle import Chronicle, all_jobs, check_counters, lock_of, renewed_after
from .harness import AppProcess, Fleet, Gate, until


async def blocked(
    queue: Queue, fleet: Fleet, gate: Gate, naps: int = 0, timeout: float | None = None
) -> tuple[AppProcess, JobHandle]:
    """A worker that took a job which blocks its loop, and others with it."""
    job = await queue.add("block", str(gate), priority=-1, timeout=timeout)
    await queue.add_many([("nap", 0)] * naps)
    worker = fleet.start(lock_duration=1, grace=0.5, cancel_grace=0.5)
    await worker.until(lambda: job.id in worker.running(), "the start of its handler")
    return worker, job


async def test_jobs_that_have_not_begun_are_done_by_another_worker(
    queue: Queue, fleet: Fleet, chronicle: Chronicle, gate: Gate
):
    worker, _ = await blocked(queue, fleet, gate, naps=5)
    other = await fleet.start(lock_duration=1).ready()
    await until(lambda: len(other.wrote("end")) == 5, "the work of the other worker")
    assert len(worker.wrote("start")) == 1
    assert len(await chronicle.ids("hand back")) == 5
    assert await chronicle.ids("stall") == []
    assert {job.attempts_made for job in await all_jobs(queue)} == {0}

    gate.open()
    await until(lambda: worker.wrote("end"), "the end of the blocking handler")
    await until(lambda: _are_completed(queue, 6), "the end of all jobs")
    assert await chronicle.ids("lock-lost") == []
    assert [line for line in worker.errors if "Traceback" in line] == []
    await check_counters(queue)


async def test_it_is_told_at_once_which_handler_blocks_and_where(queue: Queue, fleet: Fleet, gate: Gate):
    worker, _ = await blocked(queue, fleet, gate)
    await until(lambda: "has blocked the loop" in worker.said, "the warning")
    [warning] = [line for line in worker.said.splitlines() if "has blocked the loop" in line]
    assert warning.startswith("WARNING <Job 'block'")
    assert "time.sleep" in warning


async def test_a_job_keeps_its_lock_while_its_time_is_not_up(
    queue: Queue, fleet: Fleet, chronicle: Chronicle, gate: Gate
):
    worker, job = await blocked(queue, fleet, gate)
    await until(lambda: "has blocked the loop" in worker.said, "the warning")
    for _ in range(3):
        before = await lock_of(job)
        await until(lambda: renewed_after(job, before), "a renewal")  # noqa: B023 - it is awaited here
    gate.open()
    await job.result(timeout=PATIENCE)
    assert await chronicle.ids("stall") == []


async def test_a_job_whose_time_is_up_is_taken_by_another_worker(
    queue: Queue, fleet: Fleet, chronicle: Chronicle, gate: Gate
):
    _, job = await blocked(queue, fleet, gate, timeout=2)
    gate.open(start=2)
    other = await fleet.start(lock_duration=1).ready()
    result = await job.result(timeout=PATIENCE)
    assert [line.token for line in other.wrote("start", job.id)] == [result]
    assert await chronicle.ids("stall") == [job.id]


async def test_outcomes_that_were_known_are_settled(queue: Queue, fleet: Fleet, gate: Gate):
    """Those of jobs that ended in the same moment as the loop was blocked."""
    job = await queue.add("touch", priority=-2)
    await blocked(queue, fleet, gate)
    await job.result(timeout=PATIENCE)
    assert len(fleet.starts(job.id)) == 1


@pytest.mark.parametrize(
    ("grace", "blocks", "loop"),
    [
        # Every two of them together; a deep run has the rest.
        (0.5, "block-after", "auto"),
        (0.5, "block-in-c-after", "asyncio"),
        (600, "block-after", "asyncio"),
        (600, "block-in-c-after", "auto"),
        pytest.param(0.5, "block-after", "asyncio", marks=pytest.mark.deep),
        pytest.param(0.5, "block-in-c-after", "auto", marks=pytest.mark.deep),
        pytest.param(600, "block-after", "auto", marks=pytest.mark.deep),
        pytest.param(600, "block-in-c-after", "asyncio", marks=pytest.mark.deep),
    ],
)
async def test_sigterm_ends_a_worker_whose_loop_is_blocked(
    grace: float, blocks: str, loop: str, queue: Queue, fleet: Fleet, chronicle: Chronicle, gate: Gate
):
    """Once its grace is over, or when it is asked again."""
    jobs = await queue.add_many([(blocks, str(gate)), ("hold", str(gate)), ("hold-in-thread", str(gate))])
    worker = fleet.start(grace=grace, cancel_grace=0.5, orders={"loop": loop})
    await worker.until(lambda: len(worker.running()) == 3, "the start of all handlers")
    worker.terminate()
    await until(lambda: _has_ended(worker, asks=grace == 600), "the end of the worker")

    assert worker.exit_code == BLOCKED_LOOP
    assert [await job.state() for job in jobs] == ["waiting"] * 3
    assert await chronicle.ids("stall") == []
    assert await queue.workers() == []
    assert "3 jobs were handed back" in worker.said
    assert {job.attempts_made for job in await all_jobs(queue)} == {0}
    await check_counters(queue)


async def test_only_jobs_that_were_really_handed_back_are_counted(queue: Queue, fleet: Fleet, gate: Gate):
    """Not one that was cancelled while the loop was blocked."""
    _, cancelled = await queue.add_many([("block-after", str(gate)), ("hold", str(gate))])
    worker = fleet.start(grace=0.5, cancel_grace=0.5)
    await worker.until(lambda: len(worker.running()) == 2, "the start of all handlers")
    await until(lambda: "has blocked the loop" in worker.said, "the warning")
    await cancelled.cancel()
    worker.terminate()
    assert await worker.exit() == BLOCKED_LOOP
    assert "1 jobs were handed back, 0 outcomes were settled" in worker.said


def _has_ended(worker: AppProcess, *, asks: bool) -> bool:
    if asks:
        worker.terminate()
    return worker.exit_code is not None


async def _are_completed(queue: Queue, number: int) -> bool:
    return (await queue.counts())["completed"] == number
