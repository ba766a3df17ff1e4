"""Whatever a handler does, its job gets an end and the worker lives."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from typing import Any

import pytest

from ropeway import Job, JobFailed, Queue, SyncJob, Worker
from ropeway.errors import JobFinished, ShutdownTimeout
from ropeway.job.failure import REASON_LIMIT, TRACE_LIMIT
from ropeway.job.record import NewJob
from ropeway.store.contract import Store
from tests.client.fixtures import MakeQueue
from tests.client.tampering import Tampering
from tests.patience import PATIENCE

from .bad_functions import EXITS, ODD_ERRORS, exit_code_of, fork
from .watching import Ear, entered, told


async def reason_of(queue: Queue, handler: Any, **options: Any) -> str:
    """Why the job failed; and shows that the worker lives on."""

    async def fine(_: Job) -> str:
        return "fine"

    async with Worker(queue, {"send": handler, "next": fine}, concurrency=1):
        job = await queue.add("send", **options)
        with pytest.raises(JobFailed) as failed:
            await job.result(timeout=PATIENCE)
        assert await (await queue.add("next")).result(timeout=PATIENCE) == "fine"
    return failed.value.reason


@pytest.mark.parametrize("kind", EXITS)
async def test_an_async_handler_may_raise_anything(queue: Queue, kind: type[BaseException]):
    async def handle(_: Job) -> None:
        raise kind

    reason = await reason_of(queue, handle)
    assert kind.__name__ in reason


@pytest.mark.parametrize("kind", EXITS)
async def test_a_def_handler_may_raise_anything(queue: Queue, kind: type[BaseException]):
    def handle(_: SyncJob) -> None:
        raise kind

    reason = await reason_of(queue, handle)
    assert kind.__name__ in reason


async def test_even_what_closes_the_workers_own_task_loses_no_job(queue: Queue):
    """A future that carries GeneratorExit closes every coroutine that waits for it, up to the slot's."""

    async def handle(job: Job) -> str:
        if job.attempt > 1:
            return "done"
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        loop.call_soon(future.set_exception, GeneratorExit())
        await future
        return "never"

    async with Worker(queue, handle, concurrency=1):
        once = await queue.add("send")
        with pytest.raises(JobFailed, match="GeneratorExit"):
            await once.result(timeout=PATIENCE)
        twice = await queue.add("send", attempts=2)
        await told(queue, "retrying", twice)
        await twice.promote()
        assert await twice.result(timeout=PATIENCE) == "done"


async def test_sys_exit_ends_the_attempt_and_not_the_worker(queue: Queue):
    async def handle(_: Job) -> None:
        sys.exit(3)

    assert await reason_of(queue, handle) == "SystemExit: 3"


async def test_what_leaves_a_handler_may_be_retried(queue: Queue):
    async def handle(job: Job) -> str:
        if job.attempt == 1:
            raise SystemExit
        return "done"

    async with Worker(queue, handle):
        assert await (await queue.add("send", attempts=2)).result(timeout=PATIENCE) == "done"


async def test_endless_recursion_fails_the_attempt_with_a_short_trace(queue: Queue):
    def recurse() -> None:
        recurse()

    async def handle(_: Job) -> None:
        recurse()

    assert (await reason_of(queue, handle)).startswith("RecursionError")
    job = (await queue.find("failed")).jobs[0]
    [failure] = (await queue.history(job.id)).failures
    assert 0 < len(failure.trace) <= TRACE_LIMIT


class Unreadable(Exception):
    def __getattr__(self, name: str) -> Any:
        raise ValueError("no attributes")


@ODD_ERRORS
async def test_the_reason_of_an_odd_error_is_kept_as_well_as_can_be(queue: Queue, error: Exception, told: str):
    async def handle(_: Job) -> None:
        raise error

    reason = await reason_of(queue, handle)
    assert told in reason
    assert len(reason.encode()) <= REASON_LIMIT


async def test_an_error_whose_attributes_cannot_be_read_fails_its_job_all_the_same(queue: Queue):
    async def handle(_: Job) -> None:
        raise Unreadable

    assert await reason_of(queue, handle)


@pytest.mark.parametrize(
    ("result", "problem"),
    [
        ({1, 2}, "$ is a set"),
        ({"a": [object()]}, "$.a[0] is an object"),
        (float("nan"), "$ is nan"),
        (b"bytes", "$ is a bytes"),
        ("\ud800", "surrogate"),
    ],
    ids=["set", "object", "nan", "bytes", "surrogate"],
)
async def test_a_result_that_is_not_json_fails_the_job_for_good(queue: Queue, result: Any, problem: str):
    async def handle(_: Job) -> Any:
        return result

    reason = await reason_of(queue, handle, attempts=5)
    assert reason.startswith("InvalidPayload: result")
    assert problem in reason
    assert (await queue.find("failed")).jobs[0].snapshot.attempts_made == 1


async def test_a_result_may_take_exactly_the_limit_and_not_a_byte_more(make_queue: MakeQueue):
    queue = make_queue(size_limit=50)

    async def handle(job: Job) -> str:
        return "x" * int(job.data)

    async with Worker(queue, handle):
        assert await (await queue.add("send", 48)).result(timeout=PATIENCE) == "x" * 48
        job = await queue.add("send", 49, attempts=5)
        with pytest.raises(JobFailed, match="takes 51 bytes, 50 are allowed"):
            await job.result(timeout=PATIENCE)
    assert (await job.refresh()).attempts_made == 1


async def test_a_handler_that_blocks_the_loop_keeps_its_lock_and_is_named(tampered_queue: Queue, tampering: Tampering):
    """The locks of all jobs are renewed in a thread that no handler can block."""
    renewed = threading.Semaphore(0)
    tampering.after["renew"] = lambda _: renewed.release()
    beside = asyncio.Event()

    async def wait_beside(_: Job) -> str:
        await beside.wait()
        return "beside"

    times: list[float] = []

    async def block(_: Job) -> str:
        times.append(time.monotonic())
        for _number in range(3):
            assert renewed.acquire(timeout=PATIENCE)
        times.append(time.monotonic())
        return "blocked"

    worker = Worker(tampered_queue, {"block": block, "wait": wait_beside}, lock_duration=0.8, stalled_interval=0.05)
    ear = Ear(worker, "slow-loop", "lock-lost", "stalled")
    async with worker:
        other = await tampered_queue.add("wait")
        await told(tampered_queue, "active", other)
        job = await tampered_queue.add("block")
        assert await job.result(timeout=PATIENCE) == "blocked"
        slow = await ear.hear("slow-loop")
        assert slow.job is not None
        assert slow.job.id == job.id
        began, ended = times
        assert slow.data["seconds"] >= ended - began > 0.25
        beside.set()
        assert await other.result(timeout=PATIENCE) == "beside"
    assert ear.names == ["slow-loop"]
    assert [(await held.refresh()).stalled_count for held in (job, other)] == [0, 0]


async def test_a_timeout_is_enforced_when_the_loop_comes_back(queue: Queue):
    blocked = threading.Event()

    async def handle(_: Job) -> None:
        blocked.wait(0.2)
        await asyncio.Event().wait()

    async with Worker(queue, handle):
        job = await queue.add("send", timeout=0.05)
        with pytest.raises(JobFailed, match="AttemptTimeout"):
            await job.result(timeout=PATIENCE)


async def test_a_task_that_outlives_its_handler_is_told_that_the_job_is_finished(queue: Queue):
    ended = asyncio.Event()
    errors: list[BaseException] = []

    async def stray(job: Job) -> None:
        await ended.wait()
        for call in (job.progress(1), job.log("late"), job.update_data(2)):
            try:
                await call
            except JobFinished as error:
                errors.append(error)

    tasks: list[asyncio.Task[None]] = []

    async def handle(job: Job) -> None:
        tasks.append(asyncio.create_task(stray(job)))

    async with Worker(queue, handle):
        job = await queue.add("send", 1)
        await job.result(timeout=PATIENCE)
        ended.set()
        await asyncio.wait_for(tasks[0], PATIENCE)
    assert len(errors) == 3
    assert "await what a handler starts" in str(errors[0])
    assert (await job.refresh()).data == 1


async def test_a_thread_that_outlives_the_worker_is_told_that_the_job_is_finished(queue: Queue):
    begun, gone, told_so = threading.Event(), threading.Event(), threading.Event()

    def handle(job: SyncJob) -> None:
        begun.set()
        gone.wait(PATIENCE)
        try:
            job.progress(1)
        except JobFinished:
            told_so.set()

    worker = Worker(queue, handle, grace=0, cancel_grace=0.05)
    running = asyncio.create_task(worker.run())
    await queue.add("send")
    assert await asyncio.to_thread(begun.wait, PATIENCE)
    worker.stop()
    with pytest.raises(ShutdownTimeout):
        await asyncio.wait_for(running, PATIENCE)
    gone.set()
    assert await asyncio.to_thread(told_so.wait, PATIENCE)


@pytest.mark.every_store
@pytest.mark.parametrize(("data", "options"), [("1", "{not json"), ("{not json", "{}")], ids=["options", "data"])
async def test_a_damaged_job_fails_and_holds_up_nobody(queue: Queue, store: Store, data: str, options: str):
    async def handle(job: Job) -> Any:
        return job.data

    await store.add([[NewJob(queue.name, "damaged", "send", data, options)]])
    job = await queue.add("send", "whole")
    async with Worker(queue, handle, concurrency=1):
        assert await job.result(timeout=PATIENCE) == "whole"
    damaged = await queue.get("damaged")
    assert damaged is not None
    assert damaged.snapshot is not None
    assert damaged.snapshot.state == "failed"
    assert "corrupt record" in str(damaged.snapshot.reason)
    assert damaged.snapshot.attempts_made == 1


@pytest.mark.every_store
async def test_damaged_data_is_not_retried(queue: Queue, store: Store):
    async def handle(job: Job) -> Any:
        return job.data

    await store.add([[NewJob(queue.name, "damaged", "send", "{not json", '{"attempts":5}')]])
    async with Worker(queue, handle):
        await told(queue, "failed")
    damaged = await queue.get("damaged")
    assert damaged is not None
    assert damaged.snapshot is not None
    assert damaged.snapshot.attempts_made == 1


async def test_a_handler_that_is_still_running_can_be_waited_for_by_others(queue: Queue):
    """Slots are independent: one that waits for ever holds up no other."""
    forever = asyncio.Event()
    holding = asyncio.Event()

    async def handle(job: Job) -> str:
        if job.data == "hold":
            holding.set()
            await forever.wait()
        return "done"

    async with Worker(queue, handle, concurrency=2):
        held = await queue.add("send", "hold")
        await entered(holding)
        jobs = await queue.add_many(["send"] * 50)
        assert [await job.result(timeout=PATIENCE) for job in jobs] == ["done"] * 50
        forever.set()
        assert await held.result(timeout=PATIENCE) == "done"


async def test_a_handler_that_cancels_its_own_task_hurts_no_other_job(queue: Queue):
    async def handle(job: Job) -> str:
        if job.name == "selfish":
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
        return "done"

    async with Worker(queue, handle, concurrency=1):
        await queue.add("selfish")
        innocent = await queue.add("innocent")
        assert await innocent.result(timeout=PATIENCE) == "done"


async def test_a_trace_begins_with_the_handler(queue: Queue):
    async def handler(_: Job) -> None:
        raise ValueError("no luck")

    def in_a_thread(_: SyncJob) -> None:
        raise ValueError("no luck")

    async with Worker(queue, {"loop": handler, "thread": in_a_thread}):
        for name in ("loop", "thread"):
            job = await queue.add(name)
            with pytest.raises(JobFailed):
                await job.result(timeout=PATIENCE)
            [failure] = (await queue.history(job.id)).failures
            first = failure.trace.splitlines()[1]
            assert __file__ in first, failure.trace


async def test_what_the_worker_itself_found_has_no_trace(queue: Queue, caplog: pytest.LogCaptureFixture):
    async def handler(job: Job) -> object:
        if job.name == "slow":
            await asyncio.sleep(PATIENCE)
        return {1}

    async with Worker(queue, handler):
        slow, odd = await queue.add("slow", timeout=0.001), await queue.add("odd")
        for job in (slow, odd):
            with pytest.raises(JobFailed):
                await job.result(timeout=PATIENCE)
    failures = [failure for job in (slow, odd) for failure in (await job.history()).failures]
    assert [failure.trace for failure in failures] == ["", ""]
    assert all(failure.reason in caplog.text for failure in failures)
    assert "Traceback" not in caplog.text


@pytest.mark.every_store
async def test_a_forked_child_that_comes_back_from_its_handler_ends_there(
    queue: Queue, caplog: pytest.LogCaptureFixture
):
    async def on_the_loop(_: Job) -> int:
        child = fork()
        return await exit_code_of(child) if child else 0

    def in_a_thread(_: SyncJob) -> int:
        child = fork()
        return asyncio.run(exit_code_of(child)) if child else 0

    async with Worker(queue, {"loop": on_the_loop, "thread": in_a_thread}):
        for name in ("loop", "thread", "loop"):
            assert await (await queue.add(name)).result(timeout=PATIENCE) == 1


async def test_jobs_wait_for_a_thread_where_no_more_can_be_started(queue: Queue, monkeypatch: pytest.MonkeyPatch):
    def handle(job: SyncJob) -> str:
        return threading.current_thread().name

    start = threading.Thread.start
    started: list[str] = []

    def start_one(thread: threading.Thread) -> None:
        if thread.name.startswith(worker.id):
            if started:
                raise RuntimeError("can't start new thread")
            started.append(thread.name)
        start(thread)

    worker = Worker(queue, handle, concurrency=5)
    monkeypatch.setattr(threading.Thread, "start", start_one)
    async with worker:
        jobs = await queue.add_many(["send"] * 20)
        assert [await job.result(timeout=PATIENCE) for job in jobs] == started * 20


async def test_a_job_that_waits_for_a_thread_is_handed_back_at_shutdown(queue: Queue, monkeypatch: pytest.MonkeyPatch):
    start = threading.Thread.start
    refused = threading.Event()

    def start_none(thread: threading.Thread) -> None:
        if thread.name.startswith(worker.id):
            refused.set()
            raise RuntimeError("can't start new thread")
        start(thread)

    worker = Worker(queue, lambda job: None, grace=0)
    monkeypatch.setattr(threading.Thread, "start", start_none)
    async with worker:
        job = await queue.add("send")
        assert await asyncio.to_thread(refused.wait, PATIENCE)
    seen = await job.refresh()
    assert (seen.state, seen.attempts_made) == ("waiting", 0)
