"""Pipelines and steps in the tests of applications: sleeps and waits of days take no time."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from ropeway import Backoff, Flow, Job, Phase, PhaseContext, Pipeline, Queue, SignalTimeout, SyncJob, in_process
from ropeway.errors import InvalidOption
from ropeway.job.instants import Instant
from ropeway.store.commands import Command
from ropeway.testing import FakeClock, FakeStore, assert_added, drain, drain_sync
from tests.worker.step_handlers import fail_and_note, try_a_step_each_hour


async def echo(job: Job) -> Any:
    return job.data


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[Command[Any]]:
    """All that stores of tests are asked for."""
    seen: list[Command[Any]] = []
    do = FakeStore.do

    async def seeing(store: FakeStore, command: Command[Any], now: Instant | None = None) -> Any:
        seen.append(command)
        return await do(store, command, now)

    monkeypatch.setattr(FakeStore, "do", seeing)
    return seen


class TestSleeping:
    async def test_a_sleep_of_a_day_takes_no_time(self, queue: Queue, clock: FakeClock):
        begin, began = clock.now(), time.monotonic()
        done: list[str] = []

        async def remind(job: Job) -> str:
            await job.step("first", done.append, "first")
            await job.sleep("1 day")
            await job.step("second", done.append, "second")
            await job.sleep("30 days")
            return "sent"

        await queue.add("remind")
        drained = await drain(queue, remind)

        assert [one.ended for one in drained.attempts] == ["postponed", "postponed", "completed"]
        assert (drained.completed[0].result, done) == ("sent", ["first", "second"])
        assert (clock.now() - begin).days == 31
        assert time.monotonic() - began < 60

    async def test_a_sleep_until_a_moment_ends_at_it(self, queue: Queue, clock: FakeClock):
        moment = clock.now() + timedelta(days=40)

        async def remind(job: Job) -> bool:
            await job.sleep(moment)
            return clock.now() == moment

        await queue.add("remind")

        assert (await drain(queue, remind)).completed[0].result is True

    def test_in_a_thread_without_a_loop(self, queue: Queue, clock: FakeClock):
        begin = clock.now()

        def remind(job: SyncJob) -> str:
            job.sleep("1 day")
            return "sent"

        queue.sync.add("remind")

        assert drain_sync(queue, remind).completed[0].result == "sent"
        assert (clock.now() - begin).days == 1


class TestBackoff:
    @pytest.mark.parametrize("place", ["loop", "thread", "process"])
    async def test_a_step_waits_between_its_tries(self, queue: Queue, clock: FakeClock, tmp_path: Path, place: str):
        begin, notes = clock.now(), tmp_path / "notes"
        rule = Backoff.exponential("1 hour")

        async def on_loop(job: Job) -> None:
            await job.step("fails", fail_and_note, str(notes), "broken", attempts=3, backoff=rule)

        def in_thread(job: SyncJob) -> None:
            job.step("fails", fail_and_note, str(notes), "broken", attempts=3, backoff=rule)

        handlers: dict[str, Any] = {"loop": on_loop, "thread": in_thread, "process": in_process(try_a_step_each_hour)}
        await queue.add("work", str(notes))
        drained = await drain(queue, handlers[place], raise_failures=False)

        assert drained.failed[0].reason == "RuntimeError: broken"
        assert notes.read_text().count("tried") == 3
        assert clock.now() - begin == timedelta(hours=1 + 2)


class TestSignals:
    async def test_a_job_that_waits_for_a_signal_is_left(self, queue: Queue, clock: FakeClock):
        begin = clock.now()

        async def pay(job: Job) -> Any:
            return await job.wait_for("payment")

        job = await queue.add("pay")
        drained = await drain(queue, pay)
        assert (drained.left["delayed"], clock.now()) == (1, begin)

        await queue.signal(job.id, "payment", 42)
        assert (await drain(queue, pay)).completed[0].result == 42

    async def test_its_timeout_is_reached(self, queue: Queue, clock: FakeClock):
        begin = clock.now()

        async def pay(job: Job) -> Any:
            try:
                return await job.wait_for("payment", timeout="3 days")
            except SignalTimeout:
                return "not paid"

        await queue.add("pay")

        assert (await drain(queue, pay)).completed[0].result == "not paid"
        assert (clock.now() - begin).days == 3

    async def test_a_signal_of_another_job(self, queue: Queue):
        async def pay(job: Job) -> Any:
            return await job.wait_for("payment", timeout="3 days")

        async def settle(job: Job) -> None:
            await queue.signal(job.data, "payment", "euro")

        waiting = await queue.add("pay")
        await queue.add("settle", waiting.id, delay="1 day")
        drained = await drain(queue, {"pay": pay, "settle": settle})

        assert drained.completed[-1].result == "euro"


class TestPipelines:
    async def test_a_pipeline_is_drained_with_its_retries(self, queue: Queue):
        calls: list[str] = []

        async def phase(job: Job, ctx: PhaseContext) -> str:
            calls.append(ctx.name)
            await asyncio.sleep(3_600)
            if calls.count("process") == 1 and ctx.name == "process":
                raise RuntimeError("try again")
            return ctx.name

        pipeline = Pipeline([Phase(name, phase) for name in ("download", "process", "upload")])
        task = queue.task(pipeline, name="import", attempts=2, backoff="1 hour")
        job = await task.add({"file": "a.csv"})
        drained = await drain(queue)

        assert_added(queue, "import", data={"file": "a.csv"}, attempts=2)
        assert calls == ["download", "process", "process", "upload"]
        assert [one.ended for one in drained.attempts] == ["retrying", "completed"]
        assert [phase.state for phase in (await job.refresh()).phases] == ["completed"] * 3

    @pytest.mark.parametrize("concurrency", [1, 10])
    async def test_a_backoff_of_days_takes_no_time(
        self, queue: Queue, clock: FakeClock, commands: list[Command[Any]], concurrency: int
    ):
        """The worker's own services, which renew locks and look around every second, do not run through all of it."""
        tries: list[int] = []

        async def fail_twice(job: Job, ctx: PhaseContext) -> int:
            tries.append(len(tries) + 1)
            if len(tries) < 3:
                raise ConnectionError("try again")
            return len(tries)

        start = clock.now()
        job = await queue.add("import")
        pipeline = Pipeline([Phase("fetch", fail_twice, attempts=3, backoff="1 day")])
        drained = await drain(queue, pipeline, concurrency=concurrency)

        assert [one.result for one in drained.completed] == [3]
        assert (clock.now() - start).days == 2
        assert (await job.refresh()).stalled_count == 0
        assert len(commands) < 100

    async def test_the_timeout_of_a_phase_is_reached(self, queue: Queue):
        async def hang(job: Job, ctx: PhaseContext) -> None:
            await asyncio.sleep(86_400)

        await queue.add("import")
        drained = await drain(queue, Pipeline([Phase("hang", hang, timeout="1 hour")]), raise_failures=False)

        assert "its timeout of 3600 s" in str(drained.failed[0].reason)


async def test_the_jobs_of_a_pipeline_are_asserted_by_its_task(queue: Queue):
    task = queue.task(Pipeline([Phase("write", echo)]), name="letters")

    await task.add({"to": "Ann", "text": "Hello"}, delay=60)

    assert_added(task, data={"to": "Ann"}, delay="1 minute", count=1)
    with pytest.raises(AssertionError, match="expected 'Bob'"):
        assert_added(task, data={"to": "Bob"})
    with pytest.raises(InvalidOption, match="leave it out"):
        assert_added(task, "letters")


async def test_gathered_jobs_are_seen_and_drained(queue: Queue):
    async def split(job: Job) -> Any:
        return await job.gather(*(Flow("echo", number) for number in range(3)))

    await queue.add("split")
    drained = await drain(queue, {"split": split, "echo": echo})

    assert_added(queue, "echo", count=3)
    assert drained.completed[-1].result == [0, 1, 2]


@pytest.mark.parametrize("attempts", [1, 2])
async def test_a_step_is_not_repeated_by_a_retry(queue: Queue, attempts: int):
    calls: list[int] = []

    async def work(job: Job) -> None:
        await job.step("once", calls.append, 1)
        if job.attempt < attempts:
            raise RuntimeError("begin again")

    await queue.add("work", attempts=attempts)
    await drain(queue, work)

    assert calls == [1]
