"""Timeouts, cancels and lost locks reach the handler; one that does not stop is given up and reported."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

import pytest

from ropeway import Job, JobCancelled, JobFailed, LockLost, Queue, SyncJob, Worker
from ropeway.errors import HandlerError
from ropeway.store.contract import Store
from ropeway.store.values import StallRules
from tests.patience import PATIENCE

from .watching import Ear, Gate, ThreadGate, entered, told

LONG_AGO = 3_600_000


class Stubborn:
    """An async handler that will not be cancelled until it is let go."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.opened = asyncio.Event()
        self.left = asyncio.Event()
        self.cancels = 0
        self.error: BaseException | None = None

    async def __call__(self, job: Job) -> str:
        if job.attempt > 1 or job.data == "easy":
            return "done"
        self.entered.set()
        while not self.opened.is_set():
            try:
                await self.opened.wait()
            except asyncio.CancelledError:
                self.cancels += 1
        try:
            await job.progress(1)
        except Exception as error:  # noqa: BLE001 - whatever it is, the test looks at it
            self.error = error
        self.left.set()
        return "too late"


async def steal(store: Store, queue: Queue) -> None:
    """Lets every lock run out, as a far later tick would."""
    await store.tick(queue.name, StallRules(), now=await store.clock() + LONG_AGO)


async def test_an_attempt_that_takes_too_long_is_cancelled_and_fails(queue: Queue):
    gate = Gate()
    async with Worker(queue, gate):
        job = await queue.add("send", timeout=0.05)
        with pytest.raises(JobFailed, match=r"AttemptTimeout: the attempt took longer than its timeout of 0\.05 s"):
            await job.result(timeout=PATIENCE)
    assert gate.running == []


async def test_a_timeout_is_retried_like_any_error(queue: Queue):
    gate = Gate()

    async def handle(job: Job) -> str:
        return await gate(job) if job.attempt == 1 else "in time"

    async with Worker(queue, handle):
        job = await queue.add("send", timeout=0.05, attempts=2)
        assert await job.result(timeout=PATIENCE) == "in time"
    assert (await job.refresh()).attempts_made == 1


async def test_an_attempt_in_time_is_not_disturbed_by_its_timeout(queue: Queue):
    async def handle(job: Job) -> Any:
        return job.data

    async with Worker(queue, handle, concurrency=1):
        jobs = [await queue.add("send", n, timeout=0.05) for n in range(3)]
        assert [await job.result(timeout=PATIENCE) for job in jobs] == [0, 1, 2]
        gate = await queue.add("send", "later", delay=0.1)
        assert await gate.result(timeout=PATIENCE) == "later"


async def test_a_handler_may_clean_up_when_its_time_is_up(queue: Queue):
    cleaned = asyncio.Event()

    async def handle(_: Job) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.01)
            cleaned.set()

    async with Worker(queue, handle):
        job = await queue.add("send", timeout=0.02)
        with pytest.raises(JobFailed, match="AttemptTimeout"):
            await job.result(timeout=PATIENCE)
    assert cleaned.is_set()


async def test_a_handler_that_answers_after_its_time_was_too_late(queue: Queue):
    async def handle(_: Job) -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "late"
        return "never"

    async with Worker(queue, handle):
        job = await queue.add("send", timeout=0.02)
        with pytest.raises(JobFailed, match="AttemptTimeout"):
            await job.result(timeout=PATIENCE)


async def test_an_async_handler_that_ignores_its_end_is_given_up_and_its_slot_replaced(queue: Queue):
    handler = Stubborn()
    worker = Worker(queue, handler, concurrency=1, cancel_grace=0.05)
    ear = Ear(worker, "leaked")
    async with worker:
        job = await queue.add("send", timeout=0.05)
        with pytest.raises(JobFailed, match="AttemptTimeout"):
            await job.result(timeout=PATIENCE)
        leaked = await ear.hear("leaked")
        assert leaked.job is not None
        assert (leaked.job.id, leaked.data) == (job.id, {"leaked": 1})
        assert worker.leaked == 1
        assert await (await queue.add("send", "easy")).result(timeout=PATIENCE) == "done"
        handler.opened.set()
        await entered(handler.left)
        assert type(handler.error).__name__ == "JobFinished"
        assert await (await queue.add("send", "easy")).result(timeout=PATIENCE) == "done"
        assert worker.leaked == 0
    assert handler.cancels == 1, "it is told once, so that its clean-up is not cancelled too"
    assert (await job.refresh()).state == "failed"
    assert ear.names == ["leaked"]


async def test_a_given_up_attempt_is_retried_if_attempts_remain(queue: Queue):
    handler = Stubborn()
    async with Worker(queue, handler, cancel_grace=0.05):
        job = await queue.add("send", timeout=0.05, attempts=2)
        assert await job.result(timeout=PATIENCE) == "done"
        handler.opened.set()
        await entered(handler.left)
        assert await job.result(timeout=PATIENCE) == "done"
    assert (await job.refresh()).attempts_started == 2


async def test_a_def_handler_sees_that_its_time_is_up(queue: Queue):
    gate = ThreadGate()
    async with Worker(queue, gate) as worker:
        job = await queue.add("send", timeout=0.05)
        with pytest.raises(JobFailed):
            await job.result(timeout=PATIENCE)
        assert worker.leaked == 0
    assert gate.saw_cancelled


async def test_a_def_handler_that_never_returns_is_given_up_and_its_thread_replaced(queue: Queue):
    gate = ThreadGate(heeds=False)

    def handle(job: SyncJob) -> str:
        return gate(job) if job.data == "hangs" else "done"

    worker = Worker(queue, handle, concurrency=1, cancel_grace=0.05)
    ear = Ear(worker, "leaked")
    try:
        async with worker:
            job = await queue.add("send", "hangs", timeout=0.05)
            with pytest.raises(JobFailed, match="AttemptTimeout"):
                await job.result(timeout=PATIENCE)
            await ear.hear("leaked")
            assert worker.leaked == 1
            assert await (await queue.add("send")).result(timeout=PATIENCE) == "done"
    finally:
        gate.opened.set()


async def test_a_worker_with_too_many_leaks_ends_with_an_error_and_settles_the_rest(queue: Queue):
    handlers = [Stubborn(), Stubborn()]

    async def handle(job: Job) -> str:
        return "done" if job.data == "easy" else await handlers[job.data](job)

    worker = Worker(queue, handle, cancel_grace=0.05, max_leaked=2)
    running = asyncio.create_task(worker.run())
    jobs = [await queue.add("send", n, timeout=0.05) for n in range(2)]
    with pytest.raises(HandlerError, match="2 handlers do not stop"):
        await asyncio.wait_for(running, PATIENCE)
    assert [await job.state() for job in jobs] == ["failed", "failed"]
    for handler in handlers:
        handler.opened.set()
        await entered(handler.left)


@pytest.mark.every_store
async def test_cancelling_a_job_stops_its_async_handler(queue: Queue):
    gate = Gate()
    worker = Worker(queue, gate)
    ear = Ear(worker, "cancelled", "failed", "lock-lost")
    async with worker:
        job = await queue.add("send", attempts=5)
        await gate.holds(1)
        await job.cancel("not needed")
        await gate.holds(0)
        event = await ear.hear("cancelled")
        assert event.job is not None
        assert event.job.id == job.id
        with pytest.raises(JobCancelled, match="not needed"):
            await job.result(timeout=PATIENCE)
    assert ear.names == ["cancelled"]
    assert gate.runs == 1


async def test_removing_a_job_by_force_stops_its_handler_and_is_told_as_a_removal(
    queue: Queue, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO, "ropeway")
    gate = Gate()
    worker = Worker(queue, gate)
    ear = Ear(worker, "cancelled", "failed", "lock-lost", "removed")
    async with worker:
        job = await queue.add("send", attempts=5)
        await gate.holds(1)
        await queue.remove(job.id, force=True)
        await gate.holds(0)
        event = await ear.hear("removed")
    assert event.data == {"prev": "active", "queue": queue.name, "job_id": job.id}
    assert ear.names == ["removed"]
    assert "was removed after" in caplog.text
    assert gate.runs == 1


@pytest.mark.every_store
async def test_cancelling_a_job_is_seen_by_its_thread(queue: Queue):
    gate = ThreadGate()
    worker = Worker(queue, gate)
    ear = Ear(worker, "cancelled")
    async with worker:
        job = await queue.add("send")
        await gate.enter()
        await job.cancel()
        await ear.hear("cancelled")
    assert gate.saw_cancelled
    assert await job.state() == "cancelled"


@pytest.mark.every_store
async def test_the_first_job_of_a_worker_can_be_cancelled_at_once(queue: Queue):
    """What is revoked while the worker starts is not missed."""
    job = await queue.add("send")
    gate = Gate()

    async def handle(running: Job) -> None:
        await running.cancel()
        await gate(running)

    worker = Worker(queue, handle)
    ear = Ear(worker, "cancelled")
    async with worker:
        await ear.hear("cancelled")
    assert await job.state() == "cancelled"


@pytest.mark.every_store
async def test_the_result_of_a_cancelled_job_is_dropped(queue: Queue):
    async def handle(_: Job) -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "finished anyway"
        return "never"

    worker = Worker(queue, handle)
    ear = Ear(worker, "active", "cancelled", "completed", "lock-lost")
    async with worker:
        job = await queue.add("send")
        await ear.hear("active")
        await job.cancel()
        await ear.hear("cancelled")
    assert (await job.refresh()).state == "cancelled"
    assert "completed" not in ear.names


@pytest.mark.every_store
async def test_removing_a_running_job_by_force_stops_its_handler(queue: Queue):
    gate = Gate()
    async with Worker(queue, gate):
        job = await queue.add("send")
        await gate.holds(1)
        await job.remove(force=True)
        await gate.holds(0)
    assert await queue.get(job.id) is None


@pytest.mark.every_store
async def test_one_cancelled_job_disturbs_no_other(queue: Queue):
    gate = Gate()
    async with Worker(queue, gate, concurrency=3):
        jobs = await queue.add_many(("send", n) for n in range(3))
        await gate.holds(3)
        await jobs[1].cancel()
        await gate.holds(2)
        gate.opened.set()
        assert [await job.result(timeout=PATIENCE) for job in (jobs[0], jobs[2])] == ["done", "done"]


async def test_a_slot_whose_job_was_cancelled_serves_the_next_as_new(queue: Queue):
    gate = Gate()

    async def handle(job: Job) -> Any:
        if job.data == "cancel me":
            return await gate(job)
        try:
            async with asyncio.timeout(0.01):
                await asyncio.Event().wait()
        except TimeoutError:
            return "timed out as it should"
        return "never"

    async with Worker(queue, handle, concurrency=1):
        first = await queue.add("send", "cancel me")
        await gate.holds(1)
        await first.cancel()
        await gate.holds(0)
        second = await queue.add("send")
        assert await second.result(timeout=PATIENCE) == "timed out as it should"


@pytest.mark.every_store
async def test_a_lost_lock_stops_the_handler_and_its_result_is_not_taken(queue: Queue, store: Store):
    gate = Gate()

    async def handle(job: Job) -> str:
        return await gate(job) if job.record.attempts_started == 1 else "second run"

    worker = Worker(queue, handle, lock_duration=0.5)
    ear = Ear(worker, "lock-lost")
    async with worker:
        job = await queue.add("send")
        await gate.holds(1)
        await steal(store, queue)
        await gate.holds(0)
        await ear.hear("lock-lost")
        assert await job.result(timeout=PATIENCE) == "second run"
    assert (await job.refresh()).stalled_count == 1


async def test_a_lost_lock_is_seen_by_a_thread(queue: Queue, store: Store):
    gate = ThreadGate()
    worker = Worker(queue, {"send": gate}, lock_duration=0.5)
    ear = Ear(worker, "lock-lost")
    async with worker:
        job = await queue.add("send")
        await gate.enter()
        worker.pause()
        await steal(store, queue)
        await ear.hear("lock-lost")
    assert gate.saw_cancelled
    assert await job.state() == "waiting"
    assert (await job.refresh()).attempts_made == 0


async def test_a_coroutine_that_a_thread_answers_too_late_is_not_begun(queue: Queue):
    entered_thread = threading.Event()
    begun = []

    async def work() -> None:
        begun.append(True)

    def handle(job: SyncJob) -> Any:
        entered_thread.set()
        while not job.cancelled:
            threading.Event().wait(0.01)
        return work()

    worker = Worker(queue, handle)
    ear = Ear(worker, "cancelled")
    async with worker:
        job = await queue.add("send")
        assert await asyncio.to_thread(entered_thread.wait, PATIENCE)
        await job.cancel()
        await ear.hear("cancelled")
    assert begun == []


@pytest.mark.every_store
async def test_a_handler_that_lost_its_lock_can_store_nothing_more(queue: Queue, store: Store):
    errors: list[BaseException] = []

    async def handle(job: Job) -> None:
        if job.record.attempts_started > 1:
            return
        await steal(store, queue)
        for call in (job.progress(50), job.log("line"), job.update_data(2)):
            try:
                await call
            except LockLost as error:
                errors.append(error)
        raise ValueError("whatever")

    async with Worker(queue, handle):
        job = await queue.add("send", 1, attempts=3)
        await job.result(timeout=PATIENCE)
    seen = await job.refresh()
    assert [type(error) for error in errors] == [LockLost] * 3
    assert (seen.progress, seen.data, seen.attempts_made) == (None, 1, 0)
    assert (await queue.history(job.id)).log == []


async def test_the_first_reason_to_stop_counts(queue: Queue):
    """A job whose time is up while the worker shuts down is handed back, not failed."""
    started = asyncio.Event()

    async def handle(_: Job) -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(1)
            raise

    worker = Worker(queue, handle, grace=0)
    async with worker:
        # Long enough for a busy machine to begin the shutdown, and over when the handler ends.
        job = await queue.add("send", timeout=0.9)
        await entered(started)
    seen = await job.refresh()
    assert (seen.state, seen.attempts_made) == ("waiting", 0)


async def test_a_cancelled_job_needs_no_other_reason_to_stop(queue: Queue):
    """A job that is cancelled while it cleans up after its timeout is not settled any more."""
    cleaning, go_on = asyncio.Event(), asyncio.Event()

    async def handle(_: Job) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cleaning.set()
            await go_on.wait()
            raise

    worker = Worker(queue, handle)
    ear = Ear(worker, "cancelled", "lock-lost", "failed")
    async with worker:
        job = await queue.add("send", timeout=0.02)
        await entered(cleaning)
        await job.cancel()
        while not any(held.interruption == "cancelled" for held in worker.running):
            await told(queue, "cancelled", job)
            await asyncio.sleep(0.01)
        go_on.set()
        await ear.hear("cancelled")
    assert ear.names == ["cancelled"]
