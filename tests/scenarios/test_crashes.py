"""Workers that die at the worst points of a job's life."""

from __future__ import annotations

import signal

import pytest

from ropeway import Queue
from tests.patience import PATIENCE

from .chronicle import Chronicle, check_counters
from .harness import Fleet, Gate, until

CRASHES = {"out-of-memory": -signal.SIGKILL, "segfault": -signal.SIGSEGV, "exit": 0}
"""Jobs that end their worker's process, and the exit code that is seen."""


def one_of_them(chosen: str) -> pytest.MarkDecorator:
    """One kind in every run, and all in a deep one: to a store they are the same."""
    marks = {kind: () if kind == chosen else pytest.mark.deep for kind in CRASHES}
    return pytest.mark.parametrize("poison", [pytest.param(kind, marks=marks[kind]) for kind in CRASHES])


@one_of_them("out-of-memory")
async def test_a_job_that_kills_its_workers_is_given_up_and_the_queue_goes_on(
    poison: str, queue: Queue, fleet: Fleet, chronicle: Chronicle
):
    bad = await queue.add(poison)
    others = await queue.add_many([("nap", 0.001) for _ in range(20)])
    for _ in range(3):
        worker = fleet.start(concurrency=1, lock_duration=0.5, max_stalled_count=2)
        assert await worker.exit() == CRASHES[poison]
    last = fleet.start(concurrency=1, lock_duration=0.5, max_stalled_count=2)
    for job in others:
        await job.result(timeout=PATIENCE)
    await until(lambda: chronicle.ids("give up"), "the end of the poison")

    dead = await bad.refresh()
    assert dead.state == "failed"
    assert dead.stalled_count == 3
    assert "stalled more than allowable limit" in (dead.reason or "")
    assert str(fleet.workers[2].pid) in (dead.reason or "")
    assert len((await queue.history(bad.id)).failures) == 3
    assert len(fleet.starts(bad.id)) == 3
    assert last.exit_code is None
    assert await chronicle.ids("stall") == [bad.id, bad.id]
    await check_counters(queue)


@one_of_them("segfault")
async def test_a_job_that_kills_its_workers_takes_no_other_along(
    poison: str, queue: Queue, fleet: Fleet, chronicle: Chronicle
):
    bad = await queue.add(poison)
    others = await queue.add_many([("nap", 0.001) for _ in range(30)])
    for _ in range(2):
        worker = fleet.start(concurrency=10, lock_duration=0.5)
        assert await worker.exit() == CRASHES[poison]
    last = fleet.start(concurrency=10, lock_duration=0.5)
    for job in others:
        await job.result(timeout=PATIENCE)
    await until(lambda: chronicle.ids("give up"), "the end of the poison")

    dead = await bad.refresh()
    assert (dead.state, dead.stalled_count) == ("failed", 2)
    assert f":{fleet.workers[1].pid}:" in (dead.reason or "")
    assert await chronicle.ids("give up") == [bad.id]
    assert [len(fleet.starts(job.id)) for job in others] == [1] * 30
    assert last.exit_code is None
    await check_counters(queue)


async def test_a_job_that_kills_many_workers_takes_no_other_along(queue: Queue, fleet: Fleet, chronicle: Chronicle):
    """They take over from each other while it happens, and each is started again when it has died."""
    others = await queue.add_many([("nap", 0.01) for _ in range(15)])
    bad = await queue.add("exit")
    others += await queue.add_many([("nap", 0.01) for _ in range(15)])
    workers = [fleet.start(concurrency=10, lock_duration=0.5) for _ in range(3)]

    async def is_over() -> bool:
        for place, worker in enumerate(workers):
            if worker.exit_code is not None:
                workers[place] = fleet.start(concurrency=10, lock_duration=0.5)
        counts = await queue.counts()
        return counts["completed"] + counts["failed"] == len(others) + 1

    await until(is_over, "the end of all jobs")
    assert [await job.state() for job in others] == ["completed"] * len(others)
    assert await chronicle.ids("give up") == [bad.id]
    await check_counters(queue)


@pytest.mark.every_store
async def test_a_worker_killed_after_the_effect_repeats_it_under_the_same_id(
    queue: Queue, fleet: Fleet, chronicle: Chronicle, gate: Gate
):
    """The handler's start is the effect here: what came after it is lost with the worker."""
    job = await queue.add("hold", str(gate))
    first = fleet.start(lock_duration=1)
    await fleet.running_in(job.id)
    first.kill()
    second = fleet.start(lock_duration=1)
    await fleet.running_in(job.id)
    gate.open()
    result = await job.result(timeout=PATIENCE)
    runs = fleet.starts(job.id)
    assert [run.pid for run in runs] == [first.pid, second.pid]
    assert [run.attempt for run in runs] == [1, 1]
    assert result == runs[1].token
    assert await chronicle.ids("stall") == [job.id]
    assert await chronicle.ids("complete") == [job.id]


@pytest.mark.every_store
async def test_a_job_completed_by_a_worker_that_never_knew_stays_completed(
    queue: Queue, fleet: Fleet, chronicle: Chronicle
):
    job = await queue.add("nap", 0)
    first = fleet.start(lock_duration=0.5, orders={"fault": "die after the settling"})
    assert await first.exit() == -signal.SIGKILL
    assert await job.state() == "completed"
    fleet.start(lock_duration=0.5)
    later = await queue.add("nap", 0, delay=1)
    await later.result(timeout=PATIENCE)
    assert len(fleet.starts(job.id)) == 1
    assert await chronicle.ids("stall") == []
    assert await chronicle.ids("complete") == [job.id, later.id]


@pytest.mark.every_store
async def test_a_job_claimed_by_a_worker_that_died_before_its_handler_runs_once(
    queue: Queue, fleet: Fleet, chronicle: Chronicle
):
    job = await queue.add("nap", 0)
    first = fleet.start(lock_duration=0.5, orders={"fault": "die before the handler"})
    assert await first.exit() == -signal.SIGKILL
    assert await job.state() == "active"
    fleet.start(lock_duration=0.5)
    await job.result(timeout=PATIENCE)
    assert len(fleet.starts(job.id)) == 1
    assert await chronicle.ids("stall") == [job.id]


async def test_a_handler_in_a_process_ends_with_its_killed_worker(
    queue: Queue, fleet: Fleet, chronicle: Chronicle, gate: Gate
):
    job = await queue.add("hold-in-process", str(gate))
    first = fleet.start(lock_duration=1)
    await until(gate.is_guarded, "the start of the handler's process")
    first.kill()
    await until(lambda: not gate.is_guarded(), "the end of the handler's process")
    fleet.start(lock_duration=1)
    gate.open(start=2)
    assert await job.result(timeout=PATIENCE) == 2
    assert await chronicle.ids("stall") == [job.id]
