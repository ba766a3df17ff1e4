"""Workers that die, or stand still, in the second phase of a pipeline and between the steps of a handler."""

from __future__ import annotations

from typing import Any, Final

import pytest

from ropeway import JobHandle, Queue
from ropeway.worker.exit_codes import BLOCKED_LOOP
from tests.patience import PATIENCE

from .chronicle import Chronicle
from .harness import AppProcess, Fleet, Gate, stop_between_calls, until
from .parts import FETCHED, REACHED

PIPELINES: Final = ("import", "import-in-thread")
STEPS: Final = ("steps", "steps-in-thread")
OPTIONS: Final[dict[str, Any]] = {"concurrency": 4, "lock_duration": 1, "max_stalled_count": 10}
"""Jobs that may stall again do not wait to run alone."""


def parts(worker: AppProcess, job: JobHandle) -> list[str]:
    return [line.note for line in worker.wrote("part", job.id)]


async def reached(worker: AppProcess, jobs: list[JobHandle]) -> None:
    """All of them stand before the gate."""
    await worker.until(lambda: worker.running().keys() >= {job.id for job in jobs}, "the middle of all jobs")


async def phases(job: JobHandle) -> list[tuple[str, str, Any]]:
    return [(phase.name, phase.state, phase.progress) for phase in (await job.refresh()).phases]


async def steps(job: JobHandle) -> list[str]:
    return sorted(step.name for step in (await job.refresh()).steps)


async def check_results(jobs: list[JobHandle], worker: AppProcess) -> None:
    """Each is the result of the run in this worker, with what another one had stored."""
    for job in jobs:
        [token] = [line.token for line in worker.wrote("start", job.id)]
        own = [[0, 1, 2], token]
        assert await job.result(timeout=PATIENCE) == ([FETCHED, *own] if job.name in PIPELINES else own)


@pytest.mark.every_store
async def test_another_worker_goes_on_in_the_phase_and_after_the_steps_at_which_one_was_killed(
    queue: Queue, fleet: Fleet, chronicle: Chronicle, gate: Gate
):
    jobs = await queue.add_many([(name, str(gate)) for name in (*PIPELINES, *STEPS)])
    first = fleet.start(**OPTIONS)
    await reached(first, jobs)
    first.kill()
    for job in jobs[:2]:
        assert await phases(job) == [("fetch", "completed", None), ("process", "active", REACHED)]
        assert (await job.refresh()).phases[0].result == FETCHED

    second = fleet.start(**OPTIONS)
    await reached(second, jobs)
    gate.open()
    await check_results(jobs, second)

    for job in jobs[:2]:
        assert parts(first, job) == ["fetch", "process after None", "before 0", "before 1"]
        assert parts(second, job) == [f"process after {REACHED}", "after 2"]
        assert [phase.state for phase in (await job.refresh()).phases] == ["completed", "completed"]
        started = [detail["phase"] for id, detail in await chronicle.of("phase-started") if id == job.id]
        completed = [detail["phase"] for id, detail in await chronicle.of("phase-completed") if id == job.id]
        assert (started, completed) == (["fetch", "process", "process"], ["fetch", "process"])
    for job in jobs[2:]:
        assert parts(first, job) == ["before 0", "before 1"]
        assert parts(second, job) == ["after 2"]
    for job in jobs:
        assert await steps(job) == ["after", "before-0", "before-1"]
    assert sorted(await chronicle.ids("complete")) == sorted(job.id for job in jobs)


@pytest.mark.every_store
async def test_a_worker_that_stood_still_stores_no_step_and_no_phase_of_a_job_that_another_has_done(
    queue: Queue, fleet: Fleet, chronicle: Chronicle, gate: Gate
):
    jobs = await queue.add_many([(name, str(gate)) for name in (*PIPELINES, *STEPS)])
    first = fleet.start(**OPTIONS)
    await reached(first, jobs)
    await stop_between_calls(first, queue)
    second = fleet.start(**OPTIONS)
    await reached(second, jobs)
    gate.open(start=2)
    await check_results(jobs, second)
    before = [await job.refresh() for job in jobs]

    gate.open(start=1)
    first.go_on()
    await until(lambda: _refused(chronicle, jobs), "the refusal of all outcomes")
    # Those of threads, which notice nothing else.
    await first.until(lambda: all(parts(first, job)[-1] == "refused" for job in jobs[1::2]), "the refusal of steps")

    assert [await job.refresh() for job in jobs] == before
    await check_results(jobs, second)
    assert sorted(await chronicle.ids("complete")) == sorted(job.id for job in jobs)
    ends = [id for id, detail in await chronicle.of("phase-completed") if detail["phase"] == "process"]
    assert sorted(ends) == sorted(job.id for job in jobs[:2])


async def _refused(chronicle: Chronicle, jobs: list[JobHandle]) -> bool:
    return {job.id for job in jobs} <= set(await chronicle.ids("lock-lost"))


async def test_a_phase_that_ended_in_the_moment_when_the_loop_was_blocked_is_not_run_again(
    queue: Queue, fleet: Fleet, gate: Gate
):
    """Its end waits for the loop, until the worker gives that up."""
    job, blocking = await queue.add_many([("import", str(gate)), ("block", str(gate))])
    first = fleet.start(grace=0.5, cancel_grace=0.5)
    await reached(first, [blocking])
    first.terminate()
    assert await first.exit() == BLOCKED_LOOP
    assert await phases(job) == [("fetch", "completed", None), ("process", "pending", None)]

    gate.open()
    second = fleet.start(**OPTIONS)
    await job.result(timeout=PATIENCE)
    await check_results([job], second)
    assert parts(first, job) == ["fetch"]
    assert parts(second, job) == ["process after None", "before 0", "before 1", "after 2"]
