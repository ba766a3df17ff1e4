"""What a handler can say about its job while it runs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ropeway import Job, JobFailed, Queue, SyncJob, Worker
from ropeway.errors import InvalidPayload, StoreUnavailable
from tests.client.fixtures import MakeQueue
from tests.client.tampering import Outage, Tampering
from tests.patience import PATIENCE

from .watching import Ear, Gate, told


async def run(queue: Queue, handler: Any, data: Any = None, **options: Any) -> Any:
    async with Worker(queue, handler):
        job = await queue.add("send", data, **options)
        await job.result(timeout=PATIENCE)
        return job


@pytest.mark.every_store
@pytest.mark.parametrize("value", [50, 0, None, "half way", {"rows": [1, 2]}, 99.5])
async def test_progress_is_stored_announced_and_heard(queue: Queue, value: Any):
    async def handle(job: Job) -> None:
        await job.progress(value)

    def handle_in_thread(job: SyncJob) -> None:
        job.progress(value)

    worker = Worker(queue, {"send": handle, "post": handle_in_thread})
    ear = Ear(worker, "progress")
    async with worker:
        for name in ("send", "post"):
            job = await queue.add(name)
            await job.result(timeout=PATIENCE)
            assert (await told(queue, "progress", job)).data == {"progress": value}
            assert (await job.refresh()).progress == value
    assert [event.data for event in ear.events] == [{"progress": value}] * 2


async def test_progress_is_seen_while_the_handler_runs(queue: Queue):
    gate = Gate()

    async def handle(job: Job) -> None:
        await job.progress(10)
        await gate(job)

    async with Worker(queue, handle):
        job = await queue.add("send")
        await gate.holds(1)
        assert (await job.refresh()).progress == 10
        gate.opened.set()
        await job.result(timeout=PATIENCE)


@pytest.mark.every_store
async def test_log_lines_are_kept_with_the_job(queue: Queue):
    async def handle(job: Job) -> None:
        await job.log("first")
        await job.log({"second": 2})
        await job.log("third \x00 \ud800 \x1b[31m")

    job = await run(queue, handle)
    lines = [line.text for line in (await queue.history(job.id)).log]
    assert lines == ["first", "{'second': 2}", "third \\x00 \\ud800 \x1b[31m"]


async def test_a_def_handler_can_log_too(queue: Queue):
    def handle(job: SyncJob) -> None:
        job.log("line")

    job = await run(queue, handle)
    assert [line.text for line in (await queue.history(job.id)).log] == ["line"]


async def test_only_the_newest_log_lines_are_kept_and_the_others_counted(queue: Queue):
    async def handle(job: Job) -> None:
        for number in range(5):
            await job.log(number)

    job = await run(queue, handle, keep_logs=2)
    history = await queue.history(job.id)
    assert [line.text for line in history.log] == ["3", "4"]
    assert history.dropped_log_lines == 3


async def test_a_long_log_line_is_cut(queue: Queue):
    async def handle(job: Job) -> None:
        await job.log("x" * 1_000_000)

    job = await run(queue, handle)
    [line] = (await queue.history(job.id)).log
    assert len(line.text) == 4_096


@pytest.mark.every_store
async def test_updated_data_is_for_this_attempt_and_the_next(queue: Queue):
    seen = []

    async def handle(job: Job) -> None:
        seen.append(job.data)
        await job.update_data({"step": job.data["step"] + 1})
        seen.append(job.data)
        if job.attempt == 1:
            raise ValueError

    job = await run(queue, handle, {"step": 0}, attempts=2)
    assert seen == [{"step": 0}, {"step": 1}, {"step": 1}, {"step": 2}]
    assert (await job.refresh()).data == {"step": 2}


async def test_a_def_handler_can_update_its_data_too(queue: Queue):
    def handle(job: SyncJob) -> None:
        job.update_data([job.data])
        assert job.data == [1]

    assert (await (await run(queue, handle, 1)).refresh()).data == [1]


async def test_what_is_not_json_is_refused_where_it_is_said(make_queue: MakeQueue):
    queue = make_queue(size_limit=100)
    problems: list[str] = []

    async def handle(job: Job) -> None:
        for call in (
            job.progress({1}),
            job.progress(float("nan")),
            job.progress("x" * 70_000),
            job.update_data(object()),
            job.update_data("x" * 101),
        ):
            try:
                await call
            except InvalidPayload as error:
                problems.append(error.what)

    job = await run(queue, handle, 1)
    assert problems == ["progress"] * 3 + ["data"] * 2
    seen = await job.refresh()
    assert (seen.progress, seen.data) == (None, 1)


async def test_handlers_know_their_attempt_id_and_token(queue: Queue):
    seen: list[Any] = []

    async def handle(job: Job) -> None:
        seen.append((job.id, job.attempt, job.token, job.cancelled, repr(job)))
        if job.attempt == 1:
            raise ValueError

    def handle_in_thread(job: SyncJob) -> None:
        seen.append((job.id, job.attempt, job.token, job.cancelled, repr(job)))

    async with Worker(queue, {"send": handle, "post": handle_in_thread}, concurrency=1):
        first = await queue.add("send", attempts=2)
        await first.result(timeout=PATIENCE)
        second = await queue.add("post")
        await second.result(timeout=PATIENCE)
    assert [entry[:2] for entry in seen] == [(first.id, 1), (first.id, 2), (second.id, 1)]
    assert len({token for _, _, token, _, _ in seen}) == 3
    assert not any(cancelled for *_, cancelled, _ in seen)
    assert all(entry[0] in entry[4] for entry in seen)


@pytest.mark.every_store
async def test_a_moment_without_the_store_does_not_fail_a_handler(tampered_queue: Queue, tampering: Tampering):
    async def handle(job: Job) -> str:
        tampering.before["update"] = Outage(2)
        await job.progress(50)
        return "done"

    async with Worker(tampered_queue, handle):
        job = await tampered_queue.add("send")
        assert await job.result(timeout=PATIENCE) == "done"
    assert (await job.refresh()).progress == 50


@pytest.mark.every_store
async def test_a_handler_that_must_stop_does_not_wait_for_the_store(tampered_queue: Queue, tampering: Tampering):
    begun = asyncio.Event()
    errors: list[BaseException] = []

    async def handle(job: Job) -> None:
        tampering.before["update"] = Outage(1_000_000)
        try:
            begun.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            try:
                await job.progress(50)
            except StoreUnavailable as error:
                errors.append(error)
            raise

    async with Worker(tampered_queue, handle):
        job = await tampered_queue.add("send", timeout=0.05)
        with pytest.raises(JobFailed, match="AttemptTimeout"):
            await job.result(timeout=PATIENCE)
    assert len(errors) == 1


async def test_a_job_can_be_handled_and_asked_as_a_producer_would(queue: Queue):
    async def handle(job: Job) -> Any:
        return (await job.refresh()).state

    async with Worker(queue, handle):
        assert await (await queue.add("send")).result(timeout=PATIENCE) == "active"
