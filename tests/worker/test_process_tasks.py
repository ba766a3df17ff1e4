"""Tasks in processes of their own."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from ropeway import InvalidTask, JobFailed, Queue, Worker
from tests.patience import PATIENCE

from . import process_tasks as tasks
from .process_tasks import Span
from .watching import told


@pytest.fixture(params=["memory", "sqlite"])
async def queue(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Queue]:
    url = "memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/jobs.db"
    async with Queue("crunching", url) as queue:
        yield queue


async def outcome(queue: Queue, task: Any, call: Any, **options: Any) -> Any:
    async with Worker(queue, {task.name: task}, **options):
        job = await queue.add_call(call)
        return await job.result(timeout=PATIENCE), job


async def test_values_of_annotations_reach_a_process_and_come_back(queue: Queue):
    span = Span(date(2024, 2, 28), 2)
    call = tasks.last_day.call(span, extra=timedelta(days=1))
    assert (await outcome(queue, tasks.last_day, call))[0] == {date(2024, 3, 2): span}


async def test_an_async_task_in_a_process_is_given_its_job(queue: Queue):
    [attempt, number, pid], job = await outcome(queue, tasks.with_job, tasks.with_job.call(5))
    assert (attempt, number) == (1, 5)
    assert pid != os.getpid()
    assert (await job.refresh()).progress == 5


async def test_a_worker_runs_the_tasks_of_its_queue_in_processes():
    async with Worker(tasks.queue):
        job = await tasks.last_day.add(Span(date(2024, 1, 1)))
        assert await job.result(timeout=PATIENCE) == {date(2024, 1, 2): Span(date(2024, 1, 1))}


async def test_data_that_does_not_fit_fails_at_once_in_a_process(queue: Queue):
    async with Worker(queue, {"last_day": tasks.last_day}):
        job = await queue.add("last_day", {"span": {"first": "soon"}}, attempts=5)
        with pytest.raises(JobFailed) as failed:
            await job.result(timeout=PATIENCE)
    assert failed.value.reason.startswith("invalid payload: Invalid RFC3339")
    assert (await job.refresh()).attempts_made == 1


async def test_invalid_jobs_of_a_process_can_be_removed(queue: Queue):
    async with Worker(queue, {"last_day": tasks.last_day}, on_invalid="remove"):
        job = await queue.add("last_day", {}, attempts=5)
        await told(queue, "removed", job)
    assert not any((await queue.counts()).values())


async def test_a_result_that_cannot_be_stored_is_not_retried(queue: Queue):
    async with Worker(queue, {"odd": tasks.answers_wrongly}):
        job = await queue.add("odd", attempts=5)
        with pytest.raises(JobFailed, match="InvalidPayload: result cannot be stored"):
            await job.result(timeout=PATIENCE)
    assert (await job.refresh()).attempts_made == 1


def test_a_task_that_a_process_would_not_find_is_refused(queue: Queue):
    with pytest.raises(InvalidTask, match=r"process_tasks\.undecorated"):
        Worker(queue, {"elsewhere": tasks.elsewhere})
