"""SIGSTOP: a worker that stands still loses its jobs when its locks run out, and not before."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from ropeway import JobHandle, Queue
from tests.patience import PATIENCE

from .chaos import Blow, cause, reruns
from .chronicle import Chronicle, all_jobs, check_counters, lock_of, renewed_after
from .harness import Fleet, Gate, stop_between_calls, until


@pytest.mark.every_store
@pytest.mark.parametrize("handler", ["hold", "hold-in-thread"])
async def test_a_worker_that_stood_still_cannot_replace_the_result_of_another(
    handler: str, queue: Queue, fleet: Fleet, chronicle: Chronicle, gate: Gate
):
    job = await queue.add(handler, str(gate))
    first = fleet.start(lock_duration=1)
    await fleet.running_in(job.id)
    await stop_between_calls(first, queue)
    second = fleet.start(lock_duration=1)
    await until(second.running, "the second run")
    gate.open(start=2)
    result = await job.result(timeout=PATIENCE)
    before = await job.refresh()

    gate.open(start=1)
    first.go_on()
    [(refused, detail)] = await until(lambda: chronicle.of("lock-lost"), "the refusal")
    assert refused == job.id
    assert detail["move"] in ("complete", "hand back")
    assert await job.refresh() == before
    assert [result] == [line.token for line in second.wrote("start")]
    assert await chronicle.ids("complete") == [job.id]


@pytest.mark.parametrize("handler", ["hold", "hold-in-thread"])
async def test_a_worker_that_stood_still_cannot_end_the_run_of_another(
    handler: str, queue: Queue, fleet: Fleet, chronicle: Chronicle, gate: Gate
):
    job = await queue.add(handler, str(gate))
    first = fleet.start(lock_duration=1)
    await fleet.running_in(job.id)
    await stop_between_calls(first, queue)
    second = fleet.start(lock_duration=1)
    await until(second.running, "the second run")

    gate.open(start=1)
    first.go_on()
    await until(lambda: chronicle.ids("lock-lost"), "the refusal")
    assert await job.state() == "active"
    assert await chronicle.ids("complete") == []
    gate.open(start=2)
    assert [await job.result(timeout=PATIENCE)] == [line.token for line in second.wrote("start")]
    assert await chronicle.ids("complete") == [job.id]
    assert await chronicle.ids("stall") == [job.id]


async def test_a_stop_shorter_than_the_lock_has_no_effect(queue: Queue, fleet: Fleet, chronicle: Chronicle, gate: Gate):
    lock = timedelta(seconds=3)
    jobs = await queue.add_many([("hold", str(gate)), ("hold-in-thread", str(gate))])
    worker = fleet.start(lock_duration=lock.total_seconds())
    for job in jobs:
        await fleet.running_in(job.id)
    await fleet.start(lock_duration=lock.total_seconds()).ready()
    for job in jobs:
        await _renewed_after(job, await lock_of(job) - lock)
    await stop_between_calls(worker, queue)
    # More than half of what the older lock lasts: the next renewal is overdue, and in time.
    moment = min([await lock_of(job) for job in jobs]) - lock * 0.4
    await until(lambda: datetime.now(UTC) > moment)
    worker.go_on()

    for job in jobs:
        await _renewed_after(job, moment)
    gate.open()
    for job in jobs:
        await job.result(timeout=PATIENCE)
    assert [len(fleet.starts(job.id)) for job in jobs] == [1, 1]
    assert await chronicle.ids("stall") == []
    assert await chronicle.ids("lock-lost") == []
    assert await chronicle.ids("hand back") == []


@pytest.mark.every_store
async def test_after_all_workers_stood_still_everything_is_done_once(
    queue: Queue, fleet: Fleet, chronicle: Chronicle, gate: Gate
):
    workers = await fleet.start_many(3, concurrency=4, lock_duration=1)
    held = await queue.add_many([("hold", str(gate)) for _ in range(12)])
    for job in held:
        await fleet.running_in(job.id)  # so many fill the slots of all workers
    jobs = held + await queue.add_many([("nap", 0.2) for _ in range(48)])
    gate.open()
    await until(lambda: all(worker.wrote("end") for worker in workers), "work in every worker")
    stopped = {worker: worker.stop() for worker in workers}
    longest = max(job.lock_until or 0 for job in await all_jobs(queue, "active"))
    await until(lambda: _is_past(queue, longest), "the end of all locks")
    stops = [Blow(worker.pid, at, worker.go_on()) for worker, at in stopped.items()]

    for job in jobs:
        await job.result(timeout=PATIENCE)
    assert set((await chronicle.read()).completions.values()) == {1}
    assert set(chronicle.count("stall").values()) <= {1}
    assert [pair for pair in reruns(fleet) if cause(*pair, stops, lock=1) is None] == []
    assert {job.attempts_made for job in await all_jobs(queue)} == {0}
    await check_counters(queue)


@pytest.mark.every_store
async def test_a_lone_worker_that_stood_still_does_its_jobs_all_the_same(
    queue: Queue, fleet: Fleet, chronicle: Chronicle, gate: Gate
):
    """Its locks ran out, and nobody else was there to see it: no attempt is used."""
    jobs = await queue.add_many([("hold", str(gate)), ("hold-in-thread", str(gate))])
    worker = fleet.start(lock_duration=1)
    for job in jobs:
        await fleet.running_in(job.id)
    worker.stop()
    end = max([await lock_of(job) for job in jobs])
    await until(lambda: datetime.now(UTC) > end, "the end of all locks")
    worker.go_on()
    for job in jobs:
        await _renewed_after(job, end)
    gate.open()
    for job in jobs:
        await job.result(timeout=PATIENCE)
        assert (await job.refresh()).attempts_made == 0
    assert sorted(await chronicle.ids("complete")) == sorted(job.id for job in jobs)


async def _renewed_after(job: JobHandle, moment: datetime) -> None:
    await until(lambda: renewed_after(job, moment), f"a renewal of {job}")


async def _is_past(queue: Queue, instant: int) -> bool:
    return await queue.store.clock() > instant
