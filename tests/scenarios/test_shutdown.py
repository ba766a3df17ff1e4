"""SIGTERM: workers leave nothing behind, and nobody pays for it."""

from __future__ import annotations

import signal

import pytest

from ropeway import Queue
from tests.patience import PATIENCE

from .chronicle import Chronicle, all_jobs, check_counters, lock_of, renewed_after
from .harness import Fleet, Gate, show, until
from .worker_app import ASK, SHUTDOWN_TIMEOUT, TOLD


@pytest.mark.every_store
async def test_workers_that_end_under_load_give_back_what_they_hold(
    queue: Queue, fleet: Fleet, chronicle: Chronicle, gate: Gate
):
    workers = await fleet.start_many(3, concurrency=8, grace=0.5)
    await queue.add_many([("hold", str(gate)) for _ in range(6)])
    await queue.add_many([("nap", 0.05) for _ in range(2_000)])
    await until(lambda: all(len(worker.wrote("end")) > 20 for worker in workers), "work in every worker")
    for worker in workers:
        worker.terminate()

    assert [await worker.exit() for worker in workers] == [0, 0, 0]
    left = await queue.counts()
    assert left["active"] == 0
    assert left["waiting"] > 6
    assert left["waiting"] + left["completed"] == 2_006
    assert await chronicle.ids("stall") == []
    assert await chronicle.ids("lock-lost") == []
    assert len(await chronicle.ids("hand back")) >= 6
    assert {(job.attempts_made, job.stalled_count) for job in await all_jobs(queue)} == {(0, 0)}
    assert await queue.workers() == []
    assert [worker.errors for worker in workers] == [[], [], []]
    await check_counters(queue)


@pytest.mark.every_store
async def test_jobs_given_back_are_done_by_the_next_worker(
    queue: Queue, fleet: Fleet, chronicle: Chronicle, gate: Gate
):
    job = await queue.add("hold", str(gate))
    first = fleet.start(grace=0)
    await fleet.running_in(job.id)
    first.terminate()
    assert await first.exit() == 0
    second = fleet.start()
    await fleet.running_in(job.id)
    gate.open()
    await job.result(timeout=PATIENCE)
    assert [line.pid for line in fleet.starts(job.id)] == [first.pid, second.pid]
    assert (await job.refresh()).attempts_made == 0
    assert await chronicle.ids("stall") == []


async def test_handlers_that_end_within_the_grace_period_complete(
    queue: Queue, fleet: Fleet, chronicle: Chronicle, gate: Gate
):
    """Also when it lasts longer than the lock: a worker that waits renews."""
    job = await queue.add("hold", str(gate))
    worker = fleet.start(lock_duration=1, grace=60)
    await fleet.running_in(job.id)
    worker.terminate()
    lock = await lock_of(job)
    await until(lambda: renewed_after(job, lock), "a renewal after the first lock's end")
    gate.open()
    assert await worker.exit() == 0
    assert await job.state() == "completed"
    assert len(fleet.starts(job.id)) == 1
    assert await chronicle.ids("stall") == []


async def test_a_second_sigterm_ends_the_wait_at_once(queue: Queue, fleet: Fleet, chronicle: Chronicle, gate: Gate):
    jobs = await queue.add_many([("hold", str(gate)), ("listen-in-thread", None)])
    worker = fleet.start(grace=600)
    for job in jobs:
        await fleet.running_in(job.id)
    worker.terminate()
    await until(lambda: worker.wrote("stopping"), "the beginning of the shutdown")
    asked = worker.terminate()
    assert await worker.exit() == 0
    [left] = worker.wrote("left")
    show("from the second SIGTERM to the end of the worker", left.at - asked, "s")
    # Far less than the grace.
    assert left.at - asked < PATIENCE
    assert {await job.state() for job in jobs} <= {"waiting", "completed"}
    assert (await queue.counts())["waiting"] >= 1
    assert await chronicle.ids("stall") == []


async def test_a_handler_that_ignores_its_end_is_told_of_after_the_cleanup(
    queue: Queue, fleet: Fleet, chronicle: Chronicle, gate: Gate
):
    jobs = await queue.add_many([("hold-in-thread", str(gate)), ("hold", str(gate))])
    worker = fleet.start(grace=0.2, cancel_grace=0.2)
    for job in jobs:
        await fleet.running_in(job.id)
    worker.terminate()
    assert await worker.exit() == SHUTDOWN_TIMEOUT
    [timeout] = worker.wrote("shutdown timeout")
    assert timeout.note == jobs[0].id
    assert (await queue.counts())["waiting"] == 2
    assert await queue.workers() == []
    assert await chronicle.ids("stall") == []
    assert [(await job.refresh()).attempts_made for job in jobs] == [0, 0]


@pytest.mark.parametrize("loop", ["auto", "asyncio"])
async def test_a_signal_to_a_forked_child_ends_the_child_and_not_the_worker(loop: str, queue: Queue, fleet: Fleet):
    job = await queue.add("end-a-fork")
    worker = fleet.start(orders={"loop": loop})
    assert await job.result(timeout=PATIENCE) == -signal.SIGTERM
    assert await (await queue.add("touch")).result(timeout=PATIENCE)
    assert worker.exit_code is None
    assert worker.wrote("stopping") == []


async def test_signal_handlers_of_the_application_still_run(queue: Queue, fleet: Fleet):
    """Those that it added to its loop before the worker started."""
    worker = await fleet.start().ready()
    worker.signal(ASK)
    await until(lambda: TOLD in worker.said, "the handler of that signal")
    worker.terminate()
    assert await worker.exit() == 0
