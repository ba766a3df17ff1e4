"""A clock that is moved by hand, for the store, for a real worker and for handlers as they are."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime, timedelta

import pytest

from ropeway import Backoff, InvalidInput, Job, Keep, Queue, RopewayError, SyncRefused, Worker
from ropeway.testing import FakeClock, FakeStore, drain
from tests.patience import PATIENCE
from tests.worker.watching import Ear, Gate, entered

START = datetime(2030, 1, 1, 12, tzinfo=UTC)


class TestTime:
    def test_it_stands_still_from_now_or_from_where_it_is_told_to_start(self):
        before = datetime.now(UTC)
        clock = FakeClock()

        assert abs(clock.now() - before) < timedelta(minutes=1)
        assert clock.now() == clock.now()
        assert FakeClock(START).now() == START

    async def test_it_advances_by_durations_as_people_write_them(self):
        clock = FakeClock(START)
        await clock.advance("1 hour")
        await clock.advance(timedelta(seconds=1))
        await clock.advance(0.5)

        assert clock.now() == START + timedelta(hours=1, seconds=1.5)

    def test_it_advances_without_an_event_loop(self):
        clock = FakeClock(START)
        clock.advance_sync("1 day")

        assert clock.now() == START + timedelta(days=1)

    async def test_on_a_loop_it_says_which_call_to_use(self):
        with pytest.raises(SyncRefused, match=r"await clock.advance"):
            FakeClock().advance_sync(1)

    async def test_a_duration_that_cannot_be_read_moves_nothing(self):
        clock = FakeClock(START)
        with pytest.raises(InvalidInput):
            await clock.advance("soon")

        assert clock.now() == START

    async def test_sleeps_end_in_their_order_and_each_at_its_time(self):
        clock, ended = FakeClock(START), []

        async def sleep(seconds: float) -> None:
            await asyncio.sleep(seconds)
            ended.append(clock.now() - START)

        async with asyncio.TaskGroup() as group:
            for seconds in (3600, 60, 0.25, 1800):
                group.create_task(sleep(seconds))
            await clock.advance("2 hours")

        assert ended == [timedelta(seconds=seconds) for seconds in (0.25, 60, 1800, 3600)]

    async def test_a_sleep_that_begins_while_time_passes_ends_in_it(self):
        clock = FakeClock(START)

        async def three_naps() -> datetime:
            for _ in range(3):
                await asyncio.sleep(20)
            return clock.now()

        napping = asyncio.create_task(three_naps())
        await clock.advance("1 minute")

        assert napping.done()
        assert await napping == START + timedelta(minutes=1)

    async def test_a_timeout_comes_before_what_would_end_later(self):
        clock = FakeClock()

        async def slow() -> None:
            async with asyncio.timeout(60):
                await asyncio.sleep(3600)

        running = asyncio.create_task(slow())
        await clock.advance("1 hour")

        with pytest.raises(TimeoutError):
            await running

    async def test_what_nobody_advances_takes_as_long_as_it_would_anyway(self, store: FakeStore):
        queue = Queue("letters", store=store)
        async with Worker(queue, echo):
            job = await queue.add("letter", "late", delay=0.05)

            assert await job.result(timeout=PATIENCE) == "late"

    async def test_the_loop_is_left_as_it_was_found(self, clock: FakeClock):
        loop = asyncio.get_running_loop()
        before, selects = loop.time(), vars(loop)["_selector"].select
        await clock.advance("1 hour")

        assert vars(loop)["_selector"].select == selects
        assert "call_at" not in vars(loop)
        # No timer that was set meanwhile shall wait an hour longer.
        assert 3600 <= loop.time() - before < 3660

    async def test_one_loop_lives_by_one_clock(self):
        first, second = (Queue(name, store=FakeStore()) for name in ("first", "second"))
        async with Worker(first, echo):
            with pytest.raises(RopewayError, match="another FakeClock"):
                async with Worker(second, echo):
                    raise AssertionError("it must not start")

    def test_a_loop_that_cannot_be_governed_is_named(self):
        import uvloop

        async def advance() -> None:
            with pytest.raises(RopewayError, match="uvloop"):
                await FakeClock().advance(1)

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(advance())


class TestWithARealWorker:
    async def test_a_long_delay_ends(self, queue: Queue, clock: FakeClock):
        async with Worker(queue, echo):
            job = await queue.add("letter", "here", delay="3 hours")
            await clock.advance("2 hours 59 minutes")
            assert await job.state() == "delayed"
            await clock.advance("1 minute")

            assert await job.state() == "completed"

    async def test_a_second_worker_lives_by_it_when_the_first_has_ended(self, queue: Queue, clock: FakeClock):
        for number in range(2):
            async with Worker(queue, echo):
                job = await queue.add("letter", number, delay="3 hours")
                await clock.advance("4 hours")

                assert await job.state() == "completed"

    async def test_attempts_follow_their_backoff(self, queue: Queue, clock: FakeClock):
        tried: list[float] = []
        start = clock.now()

        async def fail(job: Job) -> None:
            tried.append((clock.now() - start).total_seconds())
            raise ValueError("no luck")

        async with Worker(queue, fail):
            job = await queue.add("letter", attempts=4, backoff=Backoff.exponential(10))
            await clock.advance("2 minutes")

            assert await job.state() == "failed"
        assert tried == [0, 10, 30, 70]

    async def test_a_handler_runs_into_its_timeout(self, queue: Queue, clock: FakeClock):
        async with Worker(queue, sleep_an_hour):
            job = await queue.add("letter", timeout="10 minutes")
            await clock.advance("9 minutes 59 seconds")
            assert await job.state() == "active"
            await clock.advance(1)

            assert (await job.refresh()).reason == ("AttemptTimeout: the attempt took longer than its timeout of 600 s")

    async def test_a_long_run_keeps_its_lock(self, queue: Queue, clock: FakeClock):
        async with Worker(queue, sleep_an_hour, lock_duration=30):
            job = await queue.add("letter")
            await clock.advance("2 hours")
            snapshot = await job.refresh()

        assert (snapshot.state, snapshot.stalled_count, snapshot.attempts_started) == ("completed", 0, 1)

    async def test_the_job_of_a_worker_that_died_stalls_and_runs_again(self, queue: Queue, clock: FakeClock):
        job = await queue.add("letter", "again")
        await Worker(queue, echo, lock_duration=30).claim()  # and is never heard of again
        worker = Worker(queue, echo)
        ear = Ear(worker, "stalled")
        async with worker:
            await clock.advance(29)
            assert await job.state() == "active"
            await clock.advance(7)
            snapshot = await job.refresh()

        assert (snapshot.state, snapshot.stalled_count) == ("completed", 1)
        assert ear.names == ["stalled"]

    async def test_retention_removes_by_age(self, queue: Queue, clock: FakeClock):
        async with Worker(queue, echo):
            job = await queue.add("letter", remove_on_complete=Keep(age="1 hour"))
            await clock.advance("59 minutes")
            assert await queue.get(job.id) is not None
            await clock.advance("1 minute")

            assert await queue.get(job.id) is None

    async def test_a_running_job_hears_that_it_is_cancelled(self, queue: Queue, clock: FakeClock):
        gate = Gate()
        async with Worker(queue, gate):
            job = await queue.add("letter")
            await entered(gate.entered)
            await job.cancel("not needed")
            await clock.advance()

            assert gate.running == []
        assert await job.state() == "cancelled"

    async def test_waiting_for_a_result_runs_into_its_timeout(self, queue: Queue, clock: FakeClock):
        async with Worker(queue, sleep_an_hour):
            job = await queue.add("letter")
            waiting = asyncio.create_task(job.result(timeout="10 minutes"))
            await clock.advance("10 minutes")

            with pytest.raises(TimeoutError):
                await waiting
            await clock.advance("50 minutes")

    def test_a_test_without_a_loop_moves_the_time_of_a_worker_in_another_thread(self, queue: Queue, clock: FakeClock):
        async def add() -> str:
            return (await queue.add("letter", "here", delay="1 hour")).id

        async def state(id: str) -> str:
            job = await queue.get(id)
            assert job is not None
            return await job.state()

        id = asyncio.run(add())
        worker, ready, over = Worker(queue, echo), threading.Event(), threading.Event()

        async def work() -> None:
            async with worker:
                ready.set()
                await asyncio.to_thread(over.wait)

        thread = threading.Thread(target=asyncio.run, args=(work(),))
        thread.start()
        try:
            assert ready.wait(20)
            clock.advance_sync("1 hour")
            assert asyncio.run(state(id)) == "completed"
        finally:
            over.set()
            thread.join(20)


class TestWithoutAWorker:
    async def test_the_store_lives_by_it(self, queue: Queue, clock: FakeClock):
        job = await queue.add("letter", delay="1 hour")
        due_at = (await job.refresh()).due_at

        assert due_at == clock.now() + timedelta(hours=1)
        assert await queue.store.clock() == clock.instant

    async def test_handles_of_one_store_share_jobs_and_time(self, store: FakeStore, queue: Queue):
        sibling = store.sibling()
        job = await Queue("letters", store=sibling).add("letter")

        assert await queue.get(job.id) is not None
        assert sibling.time is store.time
        assert [added.id for added in store.jobs_added] == [job.id]

    async def test_the_next_drain_cleans_what_grew_old_meanwhile(self, queue: Queue, clock: FakeClock):
        job = await queue.add("letter")
        await drain(queue, echo)
        await clock.advance("25 hours")
        assert await queue.get(job.id) is not None
        await drain(queue, echo)

        assert await queue.get(job.id) is None


async def echo(job: Job) -> object:
    return job.data


async def sleep_an_hour(job: Job) -> None:
    await asyncio.sleep(3600)
