"""What becomes of a job whose attempt did not end well."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ropeway import Backoff, Job, JobFailed, JobHandle, Queue, SyncJob, Unrecoverable, Worker
from ropeway.errors import InvalidOption
from tests.client.fixtures import MakeQueue
from tests.patience import PATIENCE

from .watching import Ear, told


class Flaky:
    """Fails so many times, then succeeds."""

    def __init__(self, failures: int, error: BaseException | None = None) -> None:
        self.left = failures
        self.attempts: list[int] = []
        self._error = error or ValueError("bad luck")

    async def __call__(self, job: Job) -> str:
        self.attempts.append(job.attempt)
        if self.left > 0:
            self.left -= 1
            raise self._error
        return "done"


async def retried_after(queue: Queue, job: JobHandle, count: int = 1) -> int:
    """Milliseconds, as the store announced them."""
    return int((await told(queue, "retrying", job, count)).data["delay"])


@pytest.mark.every_store
async def test_a_job_is_tried_as_often_as_it_says(queue: Queue):
    handler = Flaky(2)
    async with Worker(queue, handler):
        job = await queue.add("send", attempts=3)
        assert await job.result(timeout=PATIENCE) == "done"
    assert handler.attempts == [1, 2, 3]
    assert (await job.refresh()).attempts_made == 2


async def test_a_job_that_never_succeeds_fails_with_its_last_error(queue: Queue):
    handler = Flaky(9)
    async with Worker(queue, handler):
        job = await queue.add("send", attempts=3)
        with pytest.raises(JobFailed, match="ValueError: bad luck"):
            await job.result(timeout=PATIENCE)
    assert handler.attempts == [1, 2, 3]
    history = await queue.history(job.id)
    assert [failure.attempt for failure in history.failures] == [1, 2, 3]
    assert "Flaky" in history.failures[0].trace or "__call__" in history.failures[0].trace


async def test_one_attempt_is_the_default(queue: Queue):
    handler = Flaky(9)
    async with Worker(queue, handler):
        with pytest.raises(JobFailed):
            await (await queue.add("send")).result(timeout=PATIENCE)
    assert handler.attempts == [1]


@pytest.mark.every_store
async def test_without_backoff_a_retry_goes_behind_those_that_wait(queue: Queue):
    order = []

    async def handle(job: Job) -> None:
        order.append(job.data)
        if job.data == "first" and job.attempt == 1:
            raise ValueError

    await queue.add_many([("send", "first", {"attempts": 2}), ("send", "second"), ("send", "third")])
    async with Worker(queue, handle, concurrency=1):
        await told(queue, "completed", count=3)
    assert order == ["first", "second", "third", "first"]


@pytest.mark.parametrize(
    ("backoff", "delays"),
    [
        (Backoff.fixed(0.01), [10, 10, 10]),
        (Backoff.linear(0.01), [10, 20, 30]),
        (Backoff.linear(0.01, max_delay=0.015), [10, 15, 15]),
        (Backoff.exponential(0.01), [10, 20, 40]),
        (Backoff.exponential(0.01, max_delay=0.02), [10, 20, 20]),
        ("10 ms", [10, 10, 10]),
        (None, [0, 0, 0]),
    ],
    ids=["fixed", "linear", "linear with a cap", "exponential", "exponential with a cap", "text", "none"],
)
async def test_each_backoff_waits_as_it_says(queue: Queue, backoff: Any, delays: list[int]):
    async with Worker(queue, Flaky(3)):
        job = await queue.add("send", attempts=4, backoff=backoff)
        assert await job.result(timeout=PATIENCE) == "done"
    assert [await retried_after(queue, job, count) for count in (1, 2, 3)] == delays


async def test_jitter_shortens_a_delay_at_random(queue: Queue):
    async with Worker(queue, Flaky(9)):
        jobs = await queue.add_many([("send", None, {"attempts": 2, "backoff": Backoff.fixed(60, jitter=0.5)})] * 9)
        delays = [await retried_after(queue, job) for job in jobs]
    assert all(30_000 <= delay <= 60_000 for delay in delays)
    assert len(set(delays)) > 1


@pytest.mark.every_store
async def test_a_retry_with_backoff_is_delayed_until_it_is_due(queue: Queue):
    async with Worker(queue, Flaky(1)):
        job = await queue.add("send", attempts=2, backoff="1 hour")
        await told(queue, "delayed", job)
        seen = await job.refresh()
        assert (seen.state, seen.attempts_made, seen.reason) == ("delayed", 1, "ValueError: bad luck")
        await job.promote()
        assert await job.result(timeout=PATIENCE) == "done"


async def _later(attempt: int, error: BaseException, job: Any) -> float:
    await asyncio.sleep(0)
    return attempt * 0.01


@pytest.mark.parametrize(
    ("function", "delay"),
    [
        (lambda attempt, error, job: attempt * 0.01, 10),
        (_later, 10),
        (lambda *_: 0, 0),
        (lambda *_: "20 ms", 20),
        (lambda *_: 1e12, 86_400_000),
        (lambda *_: float("inf"), 86_400_000),
    ],
    ids=["def", "async def", "zero", "text", "too long", "endless"],
)
async def test_a_custom_backoff_says_how_long(queue: Queue, function: Any, delay: int):
    async with Worker(queue, Flaky(1), backoffs={"mine": function}):
        job = await queue.add("send", attempts=2, backoff=Backoff.custom("mine"))
        assert await retried_after(queue, job) == delay


async def test_a_custom_backoff_sees_the_attempt_the_error_and_the_job(queue: Queue):
    seen: list[Any] = []

    def backoff(attempt: int, error: BaseException, job: Any) -> float:
        seen.append((attempt, str(error), job.data))
        return 0

    async with Worker(queue, Flaky(2), backoffs={"mine": backoff}):
        job = await queue.add("send", "data", attempts=3, backoff=Backoff.custom("mine"))
        await job.result(timeout=PATIENCE)
    assert seen == [(1, "bad luck", "data"), (2, "bad luck", "data")]


async def test_a_negative_answer_of_a_custom_backoff_stops_retrying(queue: Queue):
    async with Worker(queue, Flaky(9), backoffs={"mine": lambda *_: -1}):
        job = await queue.add("send", attempts=5, backoff=Backoff.custom("mine"))
        with pytest.raises(JobFailed):
            await job.result(timeout=PATIENCE)
    assert (await job.refresh()).attempts_made == 1


@pytest.mark.parametrize(
    "function",
    [lambda *_: 1 / 0, lambda *_: None, lambda *_: float("nan"), lambda *_: [], lambda: 1, None],
    ids=["raises", "none", "nan", "a list", "wrong arguments", "unknown name"],
)
async def test_a_broken_custom_backoff_delays_the_retry_and_loses_nothing(queue: Queue, function: Any):
    """Without a delay a job would burn all its attempts in no time."""
    async with Worker(queue, Flaky(1), backoffs={"mine": function} if function else {}):
        job = await queue.add("send", attempts=3, backoff=Backoff.custom("mine"))
        assert await retried_after(queue, job) == 1_000
        await job.promote()
        assert await job.result(timeout=PATIENCE) == "done"


async def test_unrecoverable_fails_at_once(queue: Queue):
    handler = Flaky(9, Unrecoverable("no such customer"))
    async with Worker(queue, handler):
        job = await queue.add("send", attempts=5)
        with pytest.raises(JobFailed, match="Unrecoverable: no such customer"):
            await job.result(timeout=PATIENCE)
    assert handler.attempts == [1]


async def test_a_subclass_of_unrecoverable_and_a_def_handler_fail_at_once_too(queue: Queue):
    class Gone(Unrecoverable):
        pass

    def handle(_: SyncJob) -> None:
        raise Gone("for good")

    async with Worker(queue, handle):
        job = await queue.add("send", attempts=5)
        with pytest.raises(JobFailed, match="Gone: for good"):
            await job.result(timeout=PATIENCE)
    assert (await job.refresh()).attempts_made == 1


@pytest.mark.parametrize(
    ("verdict", "attempts"),
    [("fatal", 1), (False, 1), ("retry", 3), (True, 3), (None, 3), ("nonsense", 3)],
)
async def test_classify_decides_about_each_error(queue: Queue, verdict: Any, attempts: int):
    seen = []

    def classify(error: BaseException, job: Any) -> Any:
        seen.append((type(error), job.id))
        return verdict

    handler = Flaky(9)
    async with Worker(queue, handler, classify=classify):
        job = await queue.add("send", attempts=3)
        with pytest.raises(JobFailed):
            await job.result(timeout=PATIENCE)
    assert len(handler.attempts) == attempts
    assert seen[0] == (ValueError, job.id)


@pytest.mark.parametrize(
    ("of_worker", "of_queue", "attempts"),
    [(None, "fatal", 1), (None, None, 3), ("retry", "fatal", 3), ("fatal", "retry", 1)],
)
async def test_a_queue_classifies_what_the_worker_leaves_to_it(
    make_queue: MakeQueue, of_worker: Any, of_queue: Any, attempts: int
):
    queue = make_queue(classify=lambda error, job: of_queue)
    handler = Flaky(9)
    async with Worker(queue, handler, classify=lambda error, job: of_worker):
        job = await queue.add("send", attempts=3)
        with pytest.raises(JobFailed):
            await job.result(timeout=PATIENCE)
    assert len(handler.attempts) == attempts


async def test_each_queue_of_a_worker_classifies_its_own_jobs(make_queue: MakeQueue):
    strict, lenient = make_queue("strict", classify=lambda error, job: "fatal"), make_queue("lenient")
    async with Worker([strict, lenient], Flaky(9)):
        for queue, attempts in ((strict, 1), (lenient, 3)):
            job = await queue.add("send", attempts=3)
            with pytest.raises(JobFailed):
                await job.result(timeout=PATIENCE)
            assert (await job.refresh()).attempts_made == attempts


@pytest.mark.parametrize("error", [RuntimeError, SystemExit, KeyboardInterrupt])
async def test_a_classify_that_raises_is_as_none_at_all(queue: Queue, error: type[BaseException]):
    def classify(*_: Any) -> None:
        raise error

    async with Worker(queue, Flaky(1), classify=classify):
        job = await queue.add("send", attempts=2, backoff=0.01)
        assert await job.result(timeout=PATIENCE) == "done"
    assert await retried_after(queue, job) == 10, "and its own backoff holds"


async def test_where_the_workers_classify_raises_the_queues_decides(make_queue: MakeQueue):
    def classify(*_: Any) -> None:
        raise ZeroDivisionError

    queue = make_queue(classify=lambda error, job: "fatal")
    handler = Flaky(9)
    async with Worker(queue, handler, classify=classify):
        job = await queue.add("send", attempts=3)
        with pytest.raises(JobFailed):
            await job.result(timeout=PATIENCE)
    assert (await job.refresh()).attempts_made == 1


async def test_a_classify_that_raises_cannot_save_what_is_unrecoverable(queue: Queue):
    handler = Flaky(9, Unrecoverable("no"))
    async with Worker(queue, handler, classify=lambda *_: 1 / 0):  # type: ignore[arg-type]
        job = await queue.add("send", attempts=5)
        with pytest.raises(JobFailed):
            await job.result(timeout=PATIENCE)
    assert handler.attempts == [1]


async def test_a_discarded_job_is_not_tried_again(queue: Queue):
    async def handle(job: Job) -> None:
        job.discard()
        raise ValueError("once is enough")

    def handle_in_thread(job: SyncJob) -> None:
        job.discard()
        raise ValueError("once is enough")

    async with Worker(queue, {"send": handle, "post": handle_in_thread}):
        for name in ("send", "post"):
            job = await queue.add(name, attempts=5)
            with pytest.raises(JobFailed, match="once is enough"):
                await job.result(timeout=PATIENCE)
            assert (await job.refresh()).attempts_made == 1


async def test_a_discarded_job_that_succeeds_is_completed(queue: Queue):
    async def handle(job: Job) -> str:
        job.discard()
        return "done"

    async with Worker(queue, handle):
        assert await (await queue.add("send")).result(timeout=PATIENCE) == "done"


@pytest.mark.every_store
async def test_a_postponed_job_runs_again_later_and_uses_no_attempt(queue: Queue):
    runs = []

    async def handle(job: Job) -> str:
        runs.append(job.attempt)
        if len(runs) < 3:
            job.postpone(0.01)
        return "done"

    async with Worker(queue, handle):
        job = await queue.add("send", attempts=1)
        assert await job.result(timeout=PATIENCE) == "done"
    seen = await job.refresh()
    assert runs == [1, 1, 1]
    assert (seen.attempts_made, seen.attempts_started) == (0, 3)
    assert (await queue.history(job.id)).failures == []


async def test_a_def_handler_can_postpone_too_and_without_delay(queue: Queue):
    runs = []

    def handle(job: SyncJob) -> str:
        runs.append(1)
        if len(runs) == 1:
            job.postpone()
        return "done"

    async with Worker(queue, handle):
        assert await (await queue.add("send")).result(timeout=PATIENCE) == "done"
    assert len(runs) == 2


async def test_a_postponed_job_waits_for_the_time_that_was_asked_for(queue: Queue):
    async def handle(job: Job) -> None:
        job.postpone("1 hour")

    async with Worker(queue, handle):
        job = await queue.add("send")
        event = await told(queue, "delayed", job)
        assert event.data["due_at"] - event.at == 3_600_000


@pytest.mark.every_store
async def test_a_job_is_not_started_more_often_than_max_starts(queue: Queue):
    runs = []

    async def handle(job: Job) -> None:
        runs.append(1)
        job.postpone()

    async with Worker(queue, handle):
        job = await queue.add("send", max_starts=3, attempts=5)
        for _ in range(2):
            with pytest.raises(JobFailed, match="started more than allowable limit: max_starts is 3"):
                await job.result(timeout=PATIENCE)
            await job.retry(reset=True)
        await told(queue, "failed", job, 3)
    assert len(runs) == 9


@pytest.mark.every_store
async def test_a_failed_job_can_be_retried_by_hand_for_one_more_run(queue: Queue):
    handler = Flaky(3)
    async with Worker(queue, handler):
        job = await queue.add("send", attempts=2)
        with pytest.raises(JobFailed):
            await job.result(timeout=PATIENCE)
        await job.retry()
        await told(queue, "failed", job, 2)
        await job.retry(reset=True)
        assert await job.result(timeout=PATIENCE) == "done"
    assert handler.attempts == [1, 2, 3, 1]


async def test_retries_tell_their_listeners(queue: Queue):
    worker = Worker(queue, Flaky(9))
    ear = Ear(worker, "retrying", "waiting", "failed", "retries-exhausted")
    async with worker:
        job = await queue.add("send", attempts=2)
        await ear.hear("retries-exhausted")
    assert ear.names == ["retrying", "waiting", "failed", "retries-exhausted"]
    assert all(event.job is not None and event.job.id == job.id for event in ear.events)
    assert {**ear.events[0].data, "error": None} == {"reason": "ValueError: bad luck", "delay": 0, "error": None}


async def test_stack_traces_are_kept_up_to_the_jobs_own_number(queue: Queue):
    async with Worker(queue, Flaky(9)):
        job = await queue.add("send", attempts=5, stack_traces=2)
        with pytest.raises(JobFailed):
            await job.result(timeout=PATIENCE)
    assert [failure.attempt for failure in (await queue.history(job.id)).failures] == [4, 5]


@pytest.mark.every_store
async def test_finished_jobs_are_kept_as_they_say(queue: Queue):
    async with Worker(queue, Flaky(1), concurrency=1):
        failing = await queue.add("send", remove_on_fail=True)
        succeeding = await queue.add("send", remove_on_complete=True)
        with pytest.raises(JobFailed):
            await failing.result(timeout=PATIENCE)
        assert await succeeding.result(timeout=PATIENCE) == "done"
        await told(queue, "removed", count=2)
    assert not any((await queue.counts()).values())


@pytest.mark.parametrize("backoffs", [[], {"mine": 5}, None, "mine"])
def test_backoffs_must_be_functions_by_name(backoffs: Any):
    with pytest.raises(InvalidOption, match="backoffs"):
        Worker(Queue("letters", "memory://"), print, backoffs=backoffs)
