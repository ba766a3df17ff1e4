"""Schedules by a fake clock: a test goes through a year, and counts what it made."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from ropeway import Job, Queue, Worker
from ropeway.testing import FakeClock, FakeStore, assert_added, drain

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(START)


class Notebook:
    """A handler that notes when it ran."""

    def __init__(self, clock: FakeClock) -> None:
        self.ran: list[datetime] = []
        self._clock = clock

    async def __call__(self, job: Job) -> None:
        self.ran.append(self._clock.now())


@pytest.fixture
def notebook(clock: FakeClock) -> Notebook:
    return Notebook(clock)


async def test_a_year_of_a_daily_job_is_365_runs_in_a_second(queue: Queue, clock: FakeClock, notebook: Notebook):
    await queue.schedule("nightly", "report", cron="0 9 * * *", tz="America/New_York")
    began = time.process_time()
    async with Worker(queue, notebook):
        await clock.advance("365 days")

    assert len(notebook.ran) == 365
    assert {moment.astimezone(ZoneInfo("America/New_York")).hour for moment in notebook.ran} == {9}
    assert time.process_time() - began < 1.5


async def test_each_tick_runs_at_its_time(queue: Queue, clock: FakeClock, notebook: Notebook):
    await queue.schedule("pulse", "ping", every="30 seconds", limit=3)
    async with Worker(queue, notebook):
        await clock.advance("1 hour")

    assert notebook.ran == [START + timedelta(seconds=30 * number) for number in (1, 2, 3)]


async def test_a_clock_that_is_advanced_by_less_fires_nothing(queue: Queue, clock: FakeClock, notebook: Notebook):
    await queue.schedule("nightly", "report", cron="0 9 * * *")
    async with Worker(queue, notebook):
        await clock.advance("8 hours 59 minutes")
        assert notebook.ran == []
        await clock.advance("1 minute")
        assert len(notebook.ran) == 1


async def test_a_schedule_that_is_made_while_time_passes_counts(queue: Queue, clock: FakeClock, notebook: Notebook):
    async with Worker(queue, notebook):
        await clock.advance("1 day")
        await queue.schedule("hourly", "ping", cron="@hourly")
        await clock.advance("1 day")

    assert len(notebook.ran) == 24


async def test_resumed_after_months_it_makes_up_for_nothing(queue: Queue, clock: FakeClock, notebook: Notebook):
    await queue.schedule("nightly", "report", cron="0 9 * * *", missed="all")
    await queue.schedules.pause("nightly")
    async with Worker(queue, notebook):
        await clock.advance("90 days")
        assert notebook.ran == []
        await queue.schedules.resume("nightly")
        await clock.advance("1 day")

    assert len(notebook.ran) == 1


@pytest.mark.parametrize(("missed", "runs"), [("once", 1), ("all", 3), ("none", 0)])
async def test_ticks_at_which_no_worker_ran_are_made_up_for_as_told(
    queue: Queue, clock: FakeClock, notebook: Notebook, missed: Any, runs: int
):
    await queue.schedule("nightly", "report", cron="0 9 * * *", missed=missed)
    await clock.advance("3 days")
    async with Worker(queue, notebook):
        await clock.advance(0)
        assert len(notebook.ran) == runs
        await clock.advance("1 day")
        assert len(notebook.ran) == runs + 1


async def test_a_task_fires_by_its_own_rule(queue: Queue, clock: FakeClock):
    ran: list[datetime] = []

    @queue.task(cron="0 * * * *")
    async def sweep() -> None:
        ran.append(clock.now())

    async with Worker(queue):
        await clock.advance("1 day")

    assert len(ran) == 24


async def test_jobs_of_schedules_are_among_those_that_were_added(queue: Queue, store: FakeStore, clock: FakeClock):
    await queue.schedule("hourly", "ping", {"n": 1}, cron="@hourly")
    async with Worker(queue, {"ping": _nothing}):
        await clock.advance("3 hours")

    assert len(store.jobs_added) == 3
    assert_added(queue, "ping", data={"n": 1}, count=3)


class TestDrain:
    async def test_it_does_not_run_schedules_for_ever(self, queue: Queue, clock: FakeClock, notebook: Notebook):
        await queue.schedule("pulse", "ping", every="1 second")
        await queue.add("ping", delay="10 seconds")
        drained = await drain(queue, notebook)

        assert 1 <= len(drained.completed) <= 12
        assert clock.now() - START <= timedelta(seconds=12)

    async def test_without_jobs_no_time_passes(self, queue: Queue, clock: FakeClock, notebook: Notebook):
        await queue.schedule("pulse", "ping", every="1 second")

        assert (await drain(queue, notebook)).attempts == []
        assert clock.now() == START

    async def test_what_is_due_runs(self, queue: Queue, clock: FakeClock, notebook: Notebook):
        await queue.schedule("nightly", "report", cron="0 9 * * *")
        await clock.advance("9 hours")

        assert len((await drain(queue, notebook)).completed) == 1

    async def test_a_job_that_is_made_now_runs(self, queue: Queue, notebook: Notebook):
        await queue.schedule("nightly", "report", cron="0 9 * * *")
        await queue.schedules.run("nightly")

        assert len((await drain(queue, notebook)).completed) == 1


async def _nothing(_: Job) -> None: ...
