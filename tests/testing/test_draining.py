"""A queue is run to its end inside a test, by a real worker."""

from __future__ import annotations

import asyncio
import threading
import time
import traceback
from datetime import timedelta
from typing import Any

import pytest

from ropeway import (
    Backoff,
    InvalidOption,
    Job,
    JobFailed,
    Queue,
    RopewayError,
    SyncJob,
    SyncRefused,
    Unrecoverable,
    Worker,
    WorkerEvent,
    in_process,
)
from ropeway.testing import FakeClock, FakeStore, drain, drain_sync
from tests.worker import process_handlers


async def echo(job: Job) -> Any:
    return job.data


class Postman:
    """A handler that notes what it was given, and when."""

    def __init__(self, clock: FakeClock) -> None:
        self.delivered: list[Any] = []
        self._clock = clock
        self._start = clock.now()

    async def __call__(self, job: Job) -> None:
        self.delivered.append((job.data, (self._clock.now() - self._start).total_seconds()))


class TestWhatItRuns:
    async def test_jobs_run_one_at_a_time_and_in_order(self, queue: Queue, clock: FakeClock):
        postman = Postman(clock)
        await queue.add_many([("letter", number) for number in range(5)])
        await queue.add("letter", "urgent", priority=-1)
        drained = await drain(queue, postman)

        assert [data for data, _ in postman.delivered] == ["urgent", 0, 1, 2, 3, 4]
        assert len(drained.completed) == 6
        assert not any(drained.left.values())

    async def test_an_empty_queue_is_drained_at_once(self, queue: Queue):
        assert (await drain(queue, echo)).attempts == []

    async def test_it_goes_through_delays_of_any_length(self, queue: Queue, clock: FakeClock):
        postman = Postman(clock)
        await queue.add("letter", "late", delay="400 days")
        await queue.add("letter", "soon", delay="1 minute")
        await drain(queue, postman)

        assert postman.delivered == [("soon", 60), ("late", 400 * 86_400)]

    async def test_it_runs_what_handlers_add(self, queue: Queue, clock: FakeClock):
        async def count_down(job: Job) -> None:
            if job.data:
                await queue.add("count", job.data - 1, delay="1 hour")

        await queue.add("count", 3)
        drained = await drain(queue, count_down)

        assert [attempt.data for attempt in drained.attempts] == [3, 2, 1, 0]

    async def test_only_what_is_due_runs_if_asked(self, queue: Queue, clock: FakeClock):
        start = clock.now()
        await queue.add_many([("letter", "now"), ("letter", "late", {"delay": 60})])
        drained = await drain(queue, echo, until="due")

        assert [attempt.data for attempt in drained.completed] == ["now"]
        assert drained.left["delayed"] == 1
        assert clock.now() == start

    async def test_a_worker_drains_all_of_its_queues(self, store: FakeStore):
        first, second = (Queue(name, store=store) for name in ("first", "second"))
        await first.add("letter")
        await second.add("letter", delay=5)
        drained = await drain(Worker([first, second], echo))

        assert [attempt.queue for attempt in drained.completed] == ["first", "second"]

    async def test_several_queues_are_drained_as_by_a_worker_of_them(self, store: FakeStore):
        first, second = (Queue(name, store=store) for name in ("first", "second"))
        await first.add("letter")
        await second.add("letter", delay=5)
        drained = await drain([first, second], echo)

        assert [attempt.queue for attempt in drained.completed] == ["first", "second"]

    async def test_a_worker_is_as_it_was_afterwards_and_can_be_drained_again(self, queue: Queue):
        heard: list[WorkerEvent] = []
        worker = Worker(queue, echo, concurrency=7)
        worker.on("completed", heard.append)
        for number in range(2):
            await queue.add("letter", number)
            drained = await drain(worker)
            assert [attempt.data for attempt in drained.attempts] == [number]

        assert worker.concurrency == 7
        assert len(heard) == 2

    async def test_jobs_run_side_by_side_if_asked(self, queue: Queue):
        async def ask(job: Job) -> Any:
            question = await queue.add("answer", job.data)
            return await question.result()

        await queue.add("ask", 42)
        drained = await drain(queue, {"ask": ask, "answer": echo}, concurrency=2)

        assert [attempt.result for attempt in drained.completed] == [42, 42]

    async def test_what_has_no_handler_or_is_paused_is_left(self, queue: Queue):
        await queue.add_many(["parcel", "letter"])
        assert (await drain(queue, {"letter": echo})).left["waiting"] == 1
        await queue.pause()
        assert (await drain(queue, {"parcel": echo})).left["waiting"] == 1


class TestHandlers:
    async def test_functions_run_in_threads(self, queue: Queue):
        def handle(job: SyncJob) -> bool:
            job.progress(50)
            return threading.current_thread() is threading.main_thread()

        await queue.add("letter")

        assert (await drain(queue, handle)).completed[0].result is False

    async def test_functions_run_in_processes(self, queue: Queue):
        await queue.add("letter", {"step": 1})
        [attempt] = (await drain(queue, in_process(process_handlers.report))).completed

        assert attempt.result == {"step": 2}

    async def test_sleeping_takes_no_time(self, queue: Queue, clock: FakeClock):
        async def poll(job: Job) -> None:
            for _ in range(10):
                await asyncio.sleep(60)

        start = clock.now()
        await queue.add("letter")
        await drain(queue, poll)

        assert (clock.now() - start).total_seconds() == 600

    async def test_whatever_comes_during_a_long_sleep_happens_at_its_time(self, queue: Queue, clock: FakeClock):
        """A delay, another handler's sleep, a schedule, and the lock of a worker that has died."""
        start, seen = clock.now(), []

        async def handle(job: Job) -> None:
            if job.name == "sleep":
                await asyncio.sleep(job.data)
            seen.append((job.data, round((clock.now() - start) / timedelta(hours=1), 3)))

        lost = await queue.add("note", "of a worker that died")
        await Worker(queue, handle, lock_duration="5 hours").claim()
        await queue.add("sleep", 24 * 3600)
        await queue.add("sleep", 3 * 3600)
        await queue.add("note", "delayed", delay="2 hours")
        nine = start + timedelta(hours=9)
        await queue.schedule("once", "note", "scheduled", cron=f"{nine.minute} {nine.hour} * * *", tz="UTC")
        await drain(queue, handle, concurrency=3)

        assert (await lost.refresh()).stalled_count == 1
        assert [(what, round(at)) for what, at in seen] == [
            ("delayed", 2),
            (3 * 3600, 3),
            ("of a worker that died", 5),
            ("scheduled", 9),
            (24 * 3600, 24),
        ]

    async def test_a_sleeping_handler_runs_into_its_timeout(self, queue: Queue, clock: FakeClock):
        async def sleep(job: Job) -> None:
            await asyncio.sleep(3600)

        start = clock.now()
        await queue.add("letter", timeout=60, attempts=2)
        drained = await drain(queue, sleep, raise_failures=False)

        assert [attempt.ended for attempt in drained.attempts] == ["retrying", "failed"]
        assert (clock.now() - start).total_seconds() == 120

    async def test_the_real_world_is_waited_for_and_hurries_no_timeout(self, queue: Queue, clock: FakeClock):
        """As a call to a database: it takes real time, and the clock of the test stands still meanwhile."""

        async def ask_outside(job: Job) -> str:
            async with asyncio.timeout(5):
                return await asyncio.to_thread(outside)

        def outside() -> str:
            time.sleep(0.05)
            return "answered"

        start = clock.now()
        await queue.add("letter", timeout=10)
        [attempt] = (await drain(queue, ask_outside)).completed

        assert attempt.result == "answered"
        assert clock.now() == start

    async def test_a_handler_that_waits_for_ever_is_reached_by_advancing_beside_it(
        self, queue: Queue, clock: FakeClock
    ):
        async def hang(job: Job) -> None:
            await asyncio.Event().wait()

        await queue.add("letter", timeout="1 hour")
        draining = asyncio.create_task(drain(queue, hang, raise_failures=False))
        await clock.advance("1 hour")

        assert [attempt.ended for attempt in (await draining).attempts] == ["failed"]

    async def test_one_that_waits_for_ever_is_named(self, queue: Queue):
        async def hang(job: Job) -> None:
            await asyncio.Event().wait()

        await queue.add("letter")
        with pytest.raises(RopewayError, match=r"<Job 'letter' .* did not end in 0.05 s.*clock.advance"):
            await drain(queue, hang, patience=0.05)

        assert (await queue.counts())["waiting"] == 1


class TestFailures:
    async def test_it_raises_what_the_handler_raised(self, queue: Queue):
        problem = ValueError("no such street")

        async def deliver(job: Job) -> None:
            raise problem from KeyError("street")

        job = await queue.add("letter", attempts=2)
        with pytest.raises(ValueError, match="no such street") as caught:
            await drain(queue, deliver)

        assert caught.value is problem
        assert isinstance(problem.__cause__, KeyError)
        assert "deliver" in "".join(traceback.format_tb(problem.__traceback__))
        assert problem.__notes__ == [f"The job 'letter' {job.id} in 'letters' failed at attempt 2."]

    async def test_it_runs_the_rest_before_it_raises(self, queue: Queue):
        async def deliver(job: Job) -> None:
            if job.data < 2:
                raise ValueError(job.data)

        await queue.add_many([("letter", number) for number in range(3)])
        with pytest.raises(ValueError, match="0") as caught:
            await drain(queue, deliver)

        assert (await queue.counts())["completed"] == 1
        assert "ValueError: 1" in caught.value.__notes__[1]

    async def test_a_failure_that_was_mended_by_a_retry_raises_nothing(self, queue: Queue, clock: FakeClock):
        async def deliver(job: Job) -> None:
            if job.attempt < 3:
                raise OSError(f"attempt {job.attempt}")

        await queue.add("letter", attempts=3, backoff=Backoff.linear("1 hour"))
        drained = await drain(queue, deliver)

        assert [(str(attempt.error), attempt.delay) for attempt in drained.retried] == [
            ("attempt 1", 3600),
            ("attempt 2", 7200),
        ]
        assert drained.failed == []

    @pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError()])
    async def test_what_would_end_the_test_run_comes_as_a_failed_job(self, queue: Queue, error: BaseException):
        async def deliver(job: Job) -> None:
            raise error

        await queue.add("letter")
        with pytest.raises(JobFailed) as caught:
            await drain(queue, deliver)

        assert caught.value.__cause__ is error

    async def test_errors_of_processes_tell_their_trace(self, queue: Queue):
        await queue.add("letter")
        with pytest.raises(RopewayError, match="ValueError: bad luck") as caught:
            await drain(queue, in_process(process_handlers.raise_value_error))

        assert "raise_value_error" in str(caught.value.__notes__)

    async def test_jobs_that_add_jobs_for_ever_are_stopped(self, queue: Queue):
        async def again(job: Job) -> None:
            await queue.add("again")

        await queue.add("again")
        with pytest.raises(RopewayError, match=r"after 50 runs there are still more \('again' 51 times\)"):
            await drain(queue, again, max_jobs=50)

    async def test_a_job_whose_workers_were_lost_fails_without_an_error(self, queue: Queue):
        await queue.add("letter", "lost")
        await Worker(queue, echo).claim()
        drained = await drain(queue, echo, max_stalled_count=0, raise_failures=False)

        [lost] = drained.failed
        assert (lost.data, lost.error, drained.stalled) == ("lost", None, [lost.id])
        with pytest.raises(JobFailed, match="stalled"):
            drained.raise_failures()


class TestRefusals:
    async def test_a_queue_of_the_real_world_is_refused(self):
        queue = Queue("letters", "memory://")
        with pytest.raises(InvalidOption, match=r"'letters' is on memory://, which is no test's store: .*isolated"):
            await drain(queue, echo)

    async def test_a_worker_has_its_own_handlers(self, queue: Queue):
        with pytest.raises(InvalidOption, match="those of the worker"):
            await drain(Worker(queue, echo), echo)

    async def test_it_needs_handlers(self, queue: Queue):
        with pytest.raises(InvalidOption, match="is missing"):
            await drain(queue)

    async def test_it_needs_something_to_drain(self):
        with pytest.raises(InvalidOption, match="give a Queue or several"):
            await drain("letters", echo)  # type: ignore[arg-type]  # a mistake

    async def test_an_end_that_does_not_exist_is_refused(self, queue: Queue):
        with pytest.raises(InvalidOption, match='"idle" or "due"'):
            await drain(queue, echo, until="tomorrow")  # type: ignore[arg-type]  # a mistake

    async def test_queues_must_have_the_same_time(self):
        worker = Worker([Queue("first", store=FakeStore()), Queue("second", store=FakeStore())], echo)
        with pytest.raises(InvalidOption, match="different clocks"):
            await drain(worker)


class TestWithoutALoop:
    def test_it_runs_on_a_loop_of_its_own(self, queue: Queue):
        async def add() -> None:
            await queue.add("letter", "here", delay="1 day", attempts=2)

        asyncio.run(add())
        drained = drain_sync(queue, {"letter": echo})

        assert [attempt.result for attempt in drained.completed] == ["here"]

    def test_it_raises_what_the_handler_raised(self, queue: Queue):
        def deliver(job: SyncJob) -> None:
            raise Unrecoverable("moved away")

        asyncio.run(queue.add("letter", attempts=5))
        with pytest.raises(Unrecoverable, match="moved away"):
            drain_sync(Worker(queue, deliver))

    async def test_on_a_loop_it_says_which_call_to_use(self, queue: Queue):
        with pytest.raises(SyncRefused, match=r"await drain"):
            drain_sync(queue, echo)
