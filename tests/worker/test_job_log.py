"""What a worker's log says of single jobs."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, cast

import pytest

from ropeway import Backoff, Job, Queue, Worker
from ropeway.worker import job_log
from ropeway.worker.job_log import MOST_A_SECOND, JobLog
from ropeway.worker.timing import Timing, in_words
from tests.patience import PATIENCE

from .watching import Ear, entered


@pytest.fixture(autouse=True)
def at_info(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "ropeway")


def about(job: Any, caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in caplog.records if job.id in record.getMessage()]


async def test_a_completed_job_has_one_line_with_its_duration(queue: Queue, caplog: pytest.LogCaptureFixture):
    async with Worker(queue, lambda _: None):
        job = await queue.add("send")
        await job.result(timeout=PATIENCE)

    [record] = about(job, caplog)
    assert record.levelno == logging.INFO
    assert record.getMessage().startswith("send completed in ")
    assert record.getMessage().endswith(f"ms (letters {job.id})")
    facts = cast(Any, record).facts
    assert facts.pop("seconds") > 0
    assert facts == {"event": "completed", "queue": "letters", "job_id": job.id, "job_name": "send"}


async def test_a_job_that_fails_has_a_line_for_each_attempt(queue: Queue, caplog: pytest.LogCaptureFixture):
    async def fail(job: Job) -> None:
        raise ValueError("no luck")

    worker = Worker(queue, fail)
    ear = Ear(worker, "failed")
    async with worker:
        job = await queue.add("send", attempts=2, backoff=Backoff.fixed(0.001))
        await ear.hear("failed")

    # The store's answer to the first attempt may come after the whole second one.
    first, second = sorted(about(job, caplog), key=lambda record: record.levelno)
    assert "and is retried in 1 ms" in first.getMessage()
    assert first.getMessage().endswith(f"(letters {job.id}): ValueError: no luck")
    assert first.levelno == logging.INFO
    assert second.getMessage().startswith("send failed for good at attempt 2 of 2 after ")
    assert f"(letters {job.id}): ValueError: no luck\nTraceback" in second.getMessage()
    assert second.levelno == logging.WARNING


@pytest.mark.every_store
@pytest.mark.parametrize(("reason", "end"), [("not wanted any more", "): not wanted any more"), (None, ")")])
async def test_a_cancelled_job_has_a_line_with_the_reason(
    reason: str | None, end: str, queue: Queue, caplog: pytest.LogCaptureFixture
):
    begun = asyncio.Event()

    async def wait(job: Job) -> None:
        begun.set()
        await asyncio.Event().wait()

    worker = Worker(queue, wait)
    ear = Ear(worker, "cancelled")
    async with worker:
        job = await queue.add("send")
        await entered(begun)
        await job.cancel(reason)
        await ear.hear("cancelled")

    [record] = about(job, caplog)
    assert record.getMessage().startswith("send was cancelled after ")
    assert record.getMessage().endswith(end)


async def test_nothing_is_timed_that_is_not_told(queue: Queue, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.WARNING, "ropeway")
    timings: list[Timing | None] = []

    async with Worker(queue, lambda job: timings.append(job._job.timing)):
        await (await queue.add("send")).result(timeout=PATIENCE)

    assert timings == [None]
    assert caplog.records == []


async def test_progress_is_told_of_long_jobs_when_it_changes(
    queue: Queue, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    async def advance(job: Job) -> None:
        await job.progress(10)
        # From here on it is a long one.
        monkeypatch.setattr(job_log, "PROGRESS_EVERY", 0.0)
        for progress in (20, 20, {"pages": 3}):
            await job.progress(progress)
        monkeypatch.setattr(job_log, "PROGRESS_EVERY", 3600.0)
        await job.progress(99)

    async with Worker(queue, advance):
        job = await queue.add("send")
        await job.result(timeout=PATIENCE)

    told = [record.getMessage().removesuffix(f" (letters {job.id})") for record in about(job, caplog)]
    assert [text.partition(" after ")[0] for text in told[:-1]] == ["send is at 20 %", 'send is at {"pages":3}']


class Clock:
    """An event loop, as far as it tells the time."""

    def __init__(self) -> None:
        self.now = 0.0
        self.calls: list[Any] = []

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, call: Any) -> asyncio.TimerHandle:
        self.calls.append(call)
        return asyncio.TimerHandle(when, call, (), cast(Any, self))

    def get_debug(self) -> bool:
        return False

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        pass


async def test_a_flood_is_told_as_a_number(queue: Queue, caplog: pytest.LogCaptureFixture):
    [record] = await queue.store.get(queue.name, [(await queue.add("send")).id])
    assert record is not None
    job = Job(queue, record, 0.0)
    clock = Clock()
    told = JobLog(cast(Any, clock))

    for _ in range(MOST_A_SECOND + 1_234):
        told.completed(job)
    assert len(caplog.messages) == MOST_A_SECOND
    clock.now = 1.0
    for call in clock.calls:
        call()
    told.completed(job)

    assert len(clock.calls) == 1
    assert caplog.messages[-2] == "1,234 more jobs completed within a second"
    assert caplog.messages[-1].startswith("send completed")


async def test_a_worker_that_ends_tells_the_rest_of_its_numbers(
    queue: Queue, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(job_log, "MOST_A_SECOND", 0)
    worker = Worker(queue, lambda _: None)
    ear = Ear(worker, "completed")
    await queue.add_many(["send"] * 20)
    async with worker:
        await ear.hear("completed", 20)

    counted = [message.partition(" more jobs completed")[0] for message in caplog.messages if "more jobs" in message]
    assert sum(map(int, counted)) == 20
    assert caplog.messages[-1].endswith("has stopped")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 ms"),
        (0.00042, "0.42 ms"),
        (0.012, "12 ms"),
        (0.9994, "999 ms"),
        (0.9996, "1 s"),
        (3.254, "3.25 s"),
        (59.996, "1 min 0 s"),
        (125, "2 min 5 s"),
        (3599.9, "1 h 0 min"),
        (12_000, "3 h 20 min"),
    ],
)
def test_a_duration_in_words(seconds: float, text: str):
    assert in_words(seconds) == text
