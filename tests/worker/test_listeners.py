"""Functions that hear what a worker does."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ropeway import Job, Queue, Worker, WorkerEvent
from ropeway.errors import InvalidOption
from ropeway.worker.listeners import OWN
from tests.patience import PATIENCE

from .watching import Ear, entered, told


async def fine(job: Job) -> str:
    return "fine"


async def test_listeners_may_be_functions_or_coroutine_functions(queue: Queue):
    heard: list[str] = []
    later = asyncio.Event()
    worker = Worker(queue, fine)

    @worker.on("completed")
    def at_once(event: WorkerEvent) -> None:
        heard.append(f"{event.name} {event.data['result']}")

    @worker.on("completed")
    async def in_time(event: WorkerEvent) -> None:
        await asyncio.sleep(0)
        heard.append(f"{event.name} later")
        later.set()

    async with worker:
        await (await queue.add("send")).result(timeout=PATIENCE)
        await entered(later)
    assert heard == ["completed fine", "completed later"]


@pytest.mark.parametrize("problem", [RuntimeError("listener"), SystemExit(3)], ids=repr)
async def test_a_listener_that_raises_becomes_one_error_event_and_hurts_nobody(queue: Queue, problem: BaseException):
    worker = Worker(queue, fine)
    ear = Ear(worker, "error", "completed")

    async def raise_later(_: WorkerEvent) -> None:
        raise problem

    def raise_now(_: WorkerEvent) -> None:
        raise problem

    worker.on("completed", raise_now)
    worker.on("active", raise_later)
    async with worker:
        job = await queue.add("send")
        assert await job.result(timeout=PATIENCE) == "fine"
        await ear.hear("error", 2)
        await ear.hear("completed")
        assert await (await queue.add("send")).result(timeout=PATIENCE) == "fine"
        await ear.hear("error", 4)
    errors = [event for event in ear.events if event.name == "error"]
    assert len(errors) == 4
    assert {event.data["event"] for event in errors} == {"completed", "active"}
    assert all(event.data["error"] is problem for event in errors)
    assert errors[0].job is not None
    assert errors[0].job.id == job.id


async def test_a_listener_that_asks_what_was_cancelled_cancels_nothing_of_the_worker(queue: Queue):
    worker = Worker(queue, fine)
    ear = Ear(worker, "error")
    cancelled = asyncio.get_running_loop().create_future()
    cancelled.cancel()
    worker.on("completed", lambda _: cancelled.result())
    async with worker:
        for _ in range(3):
            assert await (await queue.add("send")).result(timeout=PATIENCE) == "fine"
        await ear.hear("error", 3)


async def test_an_error_listener_that_raises_is_not_told_of_itself(queue: Queue):
    calls = []
    worker = Worker(queue, fine)

    @worker.on("error")
    def fail(event: WorkerEvent) -> None:
        calls.append(event)
        raise RuntimeError("again")

    @worker.on("error")
    async def fail_later(event: WorkerEvent) -> None:
        calls.append(event)
        raise RuntimeError("again")

    @worker.on("completed")
    def begin(_: WorkerEvent) -> None:
        raise RuntimeError("first")

    async with worker:
        await (await queue.add("send")).result(timeout=PATIENCE)
        assert await (await queue.add("send")).result(timeout=PATIENCE) == "fine"
    assert len(calls) == 4


async def test_a_listener_that_hangs_does_not_hold_up_a_shutdown_for_ever(queue: Queue):
    worker = Worker(queue, fine, cancel_grace=0.05)
    ended = []

    @worker.on("completed")
    async def hang(_: WorkerEvent) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    async with worker:
        await (await queue.add("send")).result(timeout=PATIENCE)
        async with asyncio.timeout(PATIENCE):
            await told(queue, "completed")
    await asyncio.sleep(0)
    assert ended == [True]


async def test_a_listener_that_is_at_it_is_waited_for_at_shutdown(queue: Queue):
    worker = Worker(queue, fine)
    done = []

    @worker.on("completed")
    async def slow(_: WorkerEvent) -> None:
        await asyncio.sleep(0.05)
        done.append(True)

    async with worker:
        await (await queue.add("send")).result(timeout=PATIENCE)
    assert done == [True]


@pytest.mark.parametrize("name", ["complete", "", None, "gap", 5])
def test_what_no_worker_tells_of_cannot_be_listened_to(name: Any):
    worker = Worker(Queue("letters", "memory://"), fine)
    with pytest.raises(InvalidOption, match=r"completed.*queue\.events"):
        worker.on(name, print)


def test_a_listener_must_be_a_function():
    worker = Worker(Queue("letters", "memory://"), fine)
    with pytest.raises(InvalidOption, match="listener"):
        worker.on("completed", 5)  # type: ignore[arg-type]


@pytest.mark.every_store
async def test_every_event_of_a_run_of_jobs_reaches_its_listeners(queue: Queue):
    async def handle(job: Job) -> None:
        match job.name:
            case "fails" | "is retried" if job.attempt == 1:
                raise ValueError
            case "is postponed" if job.record.attempts_started == 1:
                job.postpone(0.01)
            case "progresses":
                await job.progress(50)

    worker = Worker(queue, handle, concurrency=1)
    ear = Ear(worker, *OWN)
    async with worker:
        for name, last, expected in [
            ("completes", "completed", ["active", "completed"]),
            ("progresses", "completed", ["active", "progress", "completed"]),
            ("fails", "retries-exhausted", ["active", "failed", "retries-exhausted"]),
            ("is retried", "completed", ["active", "retrying", "delayed", "active", "completed"]),
            ("is postponed", "completed", ["active", "delayed", "active", "completed"]),
        ]:
            ear.events.clear()
            await queue.add(name, attempts=2 if name == "is retried" else 1, backoff=0.01)
            await ear.hear(last)
            assert ear.names == expected, name
            assert {event.job.name for event in ear.events if event.job} == {name}


async def test_several_listeners_of_one_event_are_called_in_their_order(queue: Queue):
    heard: list[int] = []
    worker = Worker(queue, fine)
    worker.on("completed", lambda _: heard.append(0))
    worker.on("completed", lambda _: heard.append(1))
    worker.on("completed", lambda _: heard.append(2))
    ear = Ear(worker, "completed")
    async with worker:
        await queue.add("send")
        await ear.hear("completed")
    assert heard == [0, 1, 2]


async def test_listeners_stay_when_the_worker_is_started_again(queue: Queue):
    worker = Worker(queue, fine)
    ear = Ear(worker, "completed")
    for count in (1, 2):
        async with worker:
            await queue.add("send")
            await ear.hear("completed", count)


async def test_a_listener_that_was_taken_off_hears_no_more(queue: Queue):
    worker = Worker(queue, fine)
    ear, heard = Ear(worker, "completed"), Ear(worker, "completed")
    worker.off("completed", heard._hear)
    worker.off("failed", heard._hear)
    async with worker:
        await queue.add("send")
        await ear.hear("completed")

    assert heard.events == []


async def test_listeners_get_the_error_itself_and_the_job_keeps_it_no_longer(queue: Queue):
    problem = ValueError("no luck")

    async def fail(job: Job) -> None:
        raise problem

    worker = Worker(queue, fail)
    ear = Ear(worker, "retrying", "failed", "retries-exhausted")
    async with worker:
        await queue.add("send", attempts=2)
        await ear.hear("retries-exhausted")

    assert ear.names == ["retrying", "failed", "retries-exhausted"]
    assert all(event.data["error"] is problem for event in ear.events)
    assert all(event.job is not None and event.job.error is None for event in ear.events)
