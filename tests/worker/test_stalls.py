"""Jobs whose worker is gone start again; jobs whose worker is alive do not."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from typing import Any

import pytest

from ropeway import ClaimedJob, Job, JobFailed, JobHandle, LockLost, Queue, Worker
from ropeway.errors import InvalidOption
from ropeway.job.record import NewJob
from ropeway.store.contract import Store
from tests.client.fixtures import MakeQueue
from tests.client.tampering import Tampering
from tests.patience import PATIENCE

from .watching import Ear, Gate, told

SOON: dict[str, Any] = {"stalled_interval": 0.05}


async def fine(_: Job) -> str:
    return "second"


async def lost(queue: Queue, **options: Any) -> tuple[JobHandle, ClaimedJob]:
    """A job in the hands of a worker that died: nobody renews its lock."""
    job = await queue.add("send", **options)
    dead = Worker(queue, name="dead", lock_duration=0.1)
    [claimed] = await dead.claim()
    assert claimed.id == job.id
    return job, claimed


@pytest.mark.every_store
async def test_a_job_whose_worker_died_is_run_by_another(queue: Queue):
    job, claimed = await lost(queue)
    worker = Worker(queue, fine, **SOON)
    ear = Ear(worker, "stalled")
    async with worker:
        assert await job.result(timeout=PATIENCE) == "second"
        stalled = await ear.hear("stalled")
        assert stalled.data == {"queue": queue.name, "ids": [job.id]}
    seen = await job.refresh()
    assert (seen.stalled_count, seen.attempts_made, seen.attempts_started) == (1, 0, 2)
    event = await told(queue, "stalled", job)
    assert event.data["worker"] == claimed.record.worker
    assert "stalled" in (await queue.history(job.id)).failures[0].reason


@pytest.mark.every_store
async def test_a_stalled_job_keeps_its_place_ahead_of_newer_ones(queue: Queue):
    order = []

    async def handle(job: Job) -> None:
        order.append(job.data)

    job, _ = await lost(queue)
    worker = Worker(queue, handle, concurrency=1, **SOON)
    worker.pause()
    async with worker:
        await told(queue, "stalled", job)
        await queue.add("send", "newer")
        worker.resume()
        await told(queue, "completed", count=2)
    assert order == [None, "newer"]


@pytest.mark.every_store
async def test_a_job_that_stalls_too_often_is_given_up(queue: Queue):
    job, claimed = await lost(queue, attempts=5)
    async with Worker(queue, fine, max_stalled_count=0, **SOON):
        with pytest.raises(JobFailed, match="stalled more than allowable limit") as failed:
            await job.result(timeout=PATIENCE)
    assert str(claimed.record.worker) in failed.value.reason
    assert (await job.refresh()).attempts_started == 1


async def test_one_stall_is_allowed_by_default_and_a_second_is_not(queue: Queue):
    job, _ = await lost(queue)
    async with Worker(queue, {"other": fine}, **SOON):
        await told(queue, "stalled", job)
        await Worker(queue, lock_duration=0.1).claim()
        with pytest.raises(JobFailed, match="stalled more than allowable limit"):
            await job.result(timeout=PATIENCE)
    assert (await job.refresh()).stalled_count == 2


async def test_a_worker_may_fail_what_stalls(queue: Queue):
    job, _ = await lost(queue, attempts=5)
    worker = Worker(queue, fine, on_stalled="fail", **SOON)
    ear = Ear(worker, "stalled")
    async with worker:
        with pytest.raises(JobFailed, match="stalled"):
            await job.result(timeout=PATIENCE)
        assert (await ear.hear("stalled")).data["ids"] == [job.id]


@pytest.mark.parametrize(("of_worker", "fails"), [({}, True), ({"on_stalled": "requeue"}, False)])
async def test_a_queue_may_fail_what_stalls_if_its_worker_says_nothing_else(
    make_queue: MakeQueue, of_worker: Any, fails: bool
):
    queue = make_queue(on_stalled="fail")
    job, _ = await lost(queue)
    async with Worker(queue, fine, **of_worker, **SOON):
        with pytest.raises(JobFailed, match="stalled") if fails else nullcontext():
            await job.result(timeout=PATIENCE)
    assert await job.state() == ("failed" if fails else "completed")


async def test_a_claim_by_hand_keeps_the_queues_rule_for_what_stalls(make_queue: MakeQueue):
    queue = make_queue(on_stalled="fail")
    job, _ = await lost(queue)
    claiming = asyncio.create_task(Worker(queue, **SOON).claim(wait=PATIENCE))
    with pytest.raises(JobFailed, match="stalled"):
        await job.result(timeout=PATIENCE)
    claiming.cancel()
    await asyncio.wait([claiming])


@pytest.mark.parametrize("options", [{"on_stalled": "ignore"}, {"classify": "fatal"}])
def test_rules_of_a_queue_that_cannot_be_meant_are_refused(options: Any):
    with pytest.raises(InvalidOption, match="cannot be"):
        Queue("letters", "memory://", **options)


@pytest.mark.parametrize("attempts", [1, 2])
async def test_a_stall_may_count_as_an_attempt(queue: Queue, attempts: int):
    job, _ = await lost(queue, attempts=attempts)
    async with Worker(queue, fine, stall_counts_as_attempt=True, **SOON):
        if attempts == 1:
            with pytest.raises(JobFailed, match="stalled"):
                await job.result(timeout=PATIENCE)
        else:
            assert await job.result(timeout=PATIENCE) == "second"
    assert (await job.refresh()).attempts_made == 1


async def test_a_long_job_does_not_stall(tampered_queue: Queue, tampering: Tampering):
    """Its lock is renewed many times over, while another worker looks for stalled jobs."""
    renewed = asyncio.Event()
    count = 0
    loop = asyncio.get_running_loop()

    def note(_: Any) -> None:
        nonlocal count
        count += 1
        if count == 4:
            loop.call_soon_threadsafe(renewed.set)

    async def handle(_: Job) -> str:
        tampering.after["renew"] = note
        await renewed.wait()
        return "first"

    queue = tampered_queue
    async with (
        Worker(queue, {"send": handle}, lock_duration=0.5),
        Worker(queue, {"other": fine}, max_stalled_count=0, **SOON),
    ):
        job = await queue.add("send")
        assert await job.result(timeout=PATIENCE) == "first"
    seen = await job.refresh()
    assert (seen.stalled_count, seen.attempts_started) == (0, 1)


@pytest.mark.every_store
async def test_a_late_result_is_refused_and_the_other_workers_result_stands(queue: Queue, store: Store):
    job, late = await lost(queue)
    gate = Gate()
    async with Worker(queue, gate, **SOON):
        await gate.holds(1)
        with pytest.raises(LockLost):
            await late.complete("first")
        gate.opened.set()
        assert await job.result(timeout=PATIENCE) == "done"
        with pytest.raises(LockLost):
            await late.complete("first")
    assert (await job.refresh()).result == "done"
    assert (await told(queue, "lock-lost", job)).data == {"move": "complete"}


@pytest.mark.every_store
async def test_a_late_result_is_refused_even_if_nobody_has_taken_the_job_again(queue: Queue):
    job, late = await lost(queue)
    async with Worker(queue, {"other": fine}, **SOON):
        await told(queue, "stalled", job)
    with pytest.raises(LockLost):
        await late.complete("first")
    assert await job.state() == "waiting"


@pytest.mark.every_store
async def test_a_damaged_job_that_stalls_holds_up_no_other(queue: Queue, store: Store):
    await store.add([[NewJob(queue.name, "damaged", "send", "{not json", "{not json")]])
    await Worker(queue, lock_duration=0.1).claim()
    # The damaged one may wait again already.
    job, _ = await lost(queue, priority=-1)
    async with Worker(queue, fine, **SOON):
        assert await job.result(timeout=PATIENCE) == "second"
        await told(queue, "failed")
    [failed] = (await queue.find("failed")).jobs
    assert failed.id == "damaged"


@pytest.mark.every_store
async def test_the_slot_of_a_dead_worker_comes_back_with_its_lock(queue: Queue):
    await queue.set_global_concurrency(1)
    job, _ = await lost(queue)
    second = await queue.add("send")
    async with Worker(queue, fine, **SOON):
        assert await job.result(timeout=PATIENCE) == "second"
        assert await second.result(timeout=PATIENCE) == "second"


@pytest.mark.parametrize(
    "options",
    [
        {"lock_duration": 0.05},
        {"lock_duration": 0},
        {"lock_duration": "soon"},
        {"lock_duration": None},
        {"stalled_interval": float("nan")},
        {"max_stalled_count": -1},
        {"max_stalled_count": 1.5},
        {"on_stalled": "ignore"},
        {"stall_counts_as_attempt": "yes"},
        {"max_global_concurrency": 0},
        {"max_leaked": 0},
        {"max_process_jobs": 0},
        {"max_process_memory": 0},
        {"max_process_memory": "much"},
        {"max_process_memory": "0 MB"},
        {"max_process_memory": "5 tons"},
        {"grace": "never"},
        {"cancel_grace": object()},
        {"classify": "fatal"},
        {"name": 5},
    ],
)
def test_worker_options_that_cannot_be_meant_are_refused(options: Any):
    with pytest.raises(ValueError, match=r"cannot be|duration"):
        Worker(Queue("letters", "memory://"), fine, **options)


def test_an_unknown_worker_option_is_answered_with_the_nearest():
    with pytest.raises(InvalidOption, match="did you mean 'concurrency'"):
        Worker(Queue("letters", "memory://"), fine, concurency=5)  # type: ignore[call-arg]
    with pytest.raises(InvalidOption, match="there are concurrency"):
        Worker(Queue("letters", "memory://"), fine, zzz=5)  # type: ignore[call-arg]
