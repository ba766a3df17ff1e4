"""Attempts of a step in its place: when it is not tried again."""

from __future__ import annotations

import asyncio
import logging
import threading
from pathlib import Path
from typing import Any

import pytest

from ropeway import (
    Backoff,
    Job,
    JobFailed,
    Phase,
    PhaseContext,
    Pipeline,
    Queue,
    SignalTimeout,
    SyncJob,
    SyncPhaseContext,
    Unrecoverable,
    Worker,
    in_process,
)
from tests.client.fixtures import MakeQueue
from tests.patience import PATIENCE
from tests.scenarios.harness import until

from . import step_handlers
from .step_runs import run


class Failing:
    """Functions that fail, and count their calls."""

    def __init__(self, error: str = "broken") -> None:
        self.calls = 0
        self._error = error

    def blocking(self) -> None:
        self.calls += 1
        raise RuntimeError(self._error)

    async def on_loop(self) -> None:
        self.blocking()


def fatal_if_hopeless(error: BaseException, job: Any) -> bool | None:
    return False if "hopeless" in str(error) else None


@pytest.mark.parametrize(("error", "calls"), [("hopeless", 1), ("broken", 3)])
@pytest.mark.parametrize("of_queue", [True, False], ids=["queue", "worker"])
@pytest.mark.parametrize("place", ["loop", "thread"])
async def test_classify_decides(make_queue: MakeQueue, error: str, calls: int, of_queue: bool, place: str):
    queue = make_queue("letters", classify=fatal_if_hopeless) if of_queue else make_queue("letters")
    failing = Failing(error)

    async def on_loop(job: Job) -> None:
        await job.step("fails", failing.on_loop, attempts=3)

    def in_thread(job: SyncJob) -> None:
        job.step("fails", failing.blocking, attempts=3)

    options: Any = {} if of_queue else {"classify": fatal_if_hopeless}
    async with Worker(queue, on_loop if place == "loop" else in_thread, **options):
        job = await queue.add("work")
        with pytest.raises(JobFailed, match=error):
            await job.result(timeout=PATIENCE)

    assert failing.calls == calls


@pytest.mark.parametrize(("error", "calls"), [("hopeless", 1), ("broken", 3)])
async def test_classify_decides_for_a_process(queue: Queue, tmp_path: Path, error: str, calls: int):
    notes = tmp_path / "notes"
    async with Worker(queue, in_process(step_handlers.try_a_step), classify=fatal_if_hopeless):
        job = await queue.add("work", [str(notes), error])
        with pytest.raises(JobFailed, match=error):
            await job.result(timeout=PATIENCE)

    assert notes.read_text().count("tried") == calls


@pytest.mark.parametrize("place", ["loop", "thread"])
async def test_a_discarded_job_tries_no_more(queue: Queue, place: str):
    failing = Failing()

    def discard(job: Job | SyncJob) -> None:
        job.discard()
        failing.blocking()

    async def on_loop(job: Job) -> None:
        await job.step("fails", discard, job, attempts=3)

    def in_thread(job: SyncJob) -> None:
        job.step("fails", discard, job, attempts=3)

    with pytest.raises(JobFailed, match="broken"):
        await run(queue, on_loop if place == "loop" else in_thread, attempts=3)
    assert failing.calls == 1


async def test_a_wait_that_is_over_is_not_tried_again(queue: Queue):
    tries: list[int] = []

    async def work(job: Job) -> None:
        async def too_late() -> None:
            tries.append(1)
            raise SignalTimeout(queue.name, job.id, "payment")

        await job.step("waits", too_late, attempts=3)

    async with Worker(queue, work, classify=lambda error, job: "retry"):
        job = await queue.add("work")
        with pytest.raises(JobFailed, match="SignalTimeout"):
            await job.result(timeout=PATIENCE)
    assert tries == [1]


async def test_a_cancelled_job_tries_no_more_in_a_thread(queue: Queue):
    failing, entered, ended = Failing(), threading.Event(), threading.Event()

    def work(job: SyncJob) -> None:
        def fail_when_cancelled() -> None:
            entered.set()
            while not job.cancelled:
                ended.wait(0.01)
            failing.blocking()

        try:
            job.step("fails", fail_when_cancelled, attempts=5)
        finally:
            ended.set()

    async with Worker(queue, work):
        job = await queue.add("work")
        assert await asyncio.to_thread(entered.wait, PATIENCE)
        await job.cancel()
        assert await asyncio.to_thread(ended.wait, PATIENCE)

    assert failing.calls == 1


@pytest.mark.parametrize("place", ["loop", "thread"])
async def test_a_timeout_of_nothing_is_refused_before_the_first_try(queue: Queue, place: str):
    failing = Failing()

    async def on_loop(job: Job) -> None:
        await job.step("fails", failing.on_loop, timeout=0)

    def in_thread(job: SyncJob) -> None:
        job.step("fails", failing.blocking, timeout=0)

    with pytest.raises(JobFailed, match=r"InvalidOption: option 'timeout'.*leave it out for no timeout"):
        await run(queue, on_loop if place == "loop" else in_thread)
    assert failing.calls == 0


class TestPauses:
    """Between two tries of a step."""

    @pytest.mark.parametrize("place", ["loop", "thread", "process"])
    async def test_a_cancel_ends_one(self, queue: Queue, tmp_path: Path, place: str):
        notes, ended = tmp_path / "notes", threading.Event()

        async def on_loop(job: Job) -> None:
            await job.step("fails", step_handlers.fail_and_note, str(notes), "broken", attempts=2, backoff="1 hour")

        def in_thread(job: SyncJob) -> None:
            try:
                job.step("fails", step_handlers.fail_and_note, str(notes), "broken", attempts=2, backoff="1 hour")
            finally:
                ended.set()

        in_a_process = in_process(step_handlers.try_a_step_each_hour)
        handlers: dict[str, Any] = {"loop": on_loop, "thread": in_thread, "process": in_a_process}
        async with Worker(queue, handlers[place]) as worker:
            job = await queue.add("work", str(notes))
            await until(notes.exists, "the first try")
            await job.cancel()
            await worker.idle()
            if place == "thread":
                assert ended.is_set()
            assert (await job.state(), worker.leaked) == ("cancelled", 0)
        assert notes.read_text().count("tried") == 1

    @pytest.mark.parametrize("place", ["loop", "thread"])
    async def test_a_shutdown_ends_one_and_hands_the_job_back(self, queue: Queue, place: str):
        failing = Failing()

        async def on_loop(job: Job) -> None:
            await job.step("fails", failing.on_loop, attempts=2, backoff="1 hour")

        def in_thread(job: SyncJob) -> None:
            job.step("fails", failing.blocking, attempts=2, backoff="1 hour")

        worker = Worker(queue, on_loop if place == "loop" else in_thread, grace=0)
        async with worker:
            job = await queue.add("work")
            await until(lambda: failing.calls == 1, "the first try")
        assert (await job.state(), (await job.refresh()).attempts_made) == ("waiting", 0)

    async def test_the_timeout_of_a_phase_in_a_thread_ends_one(self, queue: Queue):
        failing = Failing()

        def work(job: SyncJob, ctx: SyncPhaseContext) -> None:
            job.step("fails", failing.blocking, attempts=3, backoff="1 hour")

        pipeline = Pipeline([Phase("work", work, timeout=0.05, attempts=2)])
        async with Worker(queue, pipeline) as worker:
            job = await queue.add("work")
            with pytest.raises(JobFailed, match="AttemptTimeout: phase 'work' took longer"):
                await job.result(timeout=PATIENCE)
            assert (failing.calls, worker.leaked) == (2, 0)

    @pytest.mark.parametrize("kind", ["handler", "with a timeout", "phase"])
    async def test_the_failure_of_a_step_beside_it_ends_one(self, queue: Queue, kind: str):
        failing = Failing()

        async def give_up() -> None:
            await until(lambda: failing.calls, "the first try")
            raise Unrecoverable("no luck")

        async def work(job: Job, ctx: Any = None) -> None:
            fails = job.step("fails", failing.on_loop, attempts=2, backoff="1 hour")
            await asyncio.gather(fails, job.step("gives up", give_up))

        handler: Any = Pipeline([Phase("work", work, attempts=2)]) if kind == "phase" else work
        with pytest.raises(JobFailed, match="no luck"):
            await run(queue, handler, timeout=PATIENCE if kind == "with a timeout" else None)
        assert failing.calls == 1

    @pytest.mark.parametrize("backoff", [Backoff.custom("mine"), lambda attempt: attempt, "soon"], ids=type)
    async def test_those_of_custom_functions_are_refused_and_never_advised(self, queue: Queue, backoff: Any):
        async def work(job: Job) -> None:
            await job.step("fails", Failing().on_loop, attempts=2, backoff=backoff)

        with pytest.raises(JobFailed, match=r"InvalidOption: option 'backoff'.*use a duration") as caught:
            await run(queue, work)
        assert "use Backoff.custom" not in str(caught.value)
        assert ".custom(name)" not in str(caught.value)


class TestStepsThatDoNotStop:
    """A step that ignores its timeout is given up with its job, as a phase or a handler would be."""

    @pytest.mark.parametrize("kind", ["on the loop", "in a thread"])
    async def test_its_slot_is_replaced(self, queue: Queue, kind: str):
        opened, thread_opened = asyncio.Event(), threading.Event()

        async def stubborn() -> str:
            while not opened.is_set():
                try:
                    await opened.wait()
                except asyncio.CancelledError:
                    continue
            return "late"

        def blocking() -> str:
            thread_opened.wait()
            return "late"

        async def bad(job: Job) -> str:
            function: Any = stubborn if kind == "on the loop" else blocking
            return await job.step("hang", function, timeout=0.05, attempts=3)

        async def good(job: Job) -> str:
            return "fine"

        try:
            async with Worker(queue, {"bad": bad, "good": good}, concurrency=1, cancel_grace=0.05) as worker:
                job = await queue.add("bad")
                with pytest.raises(JobFailed, match=r"AttemptTimeout.*0\.05 s"):
                    await job.result(timeout=PATIENCE)
                assert worker.leaked == 1
                assert await (await queue.add("good")).result(timeout=PATIENCE) == "fine"
                opened.set()
                thread_opened.set()
        finally:
            thread_opened.set()

        assert (await job.refresh()).steps == ()


async def fail_twice(job: Job) -> None:
    await job.step("fails", Failing().on_loop, attempts=2, backoff=0.001)


def fail_twice_in_a_thread(job: SyncJob) -> None:
    job.step("fails", Failing().blocking, attempts=2, backoff=0.001)


async def fail_phase(job: Job, ctx: PhaseContext) -> None:
    await Failing().on_loop()


@pytest.mark.parametrize(
    ("handler", "what"),
    [
        (fail_twice, "step 'fails'"),
        (fail_twice_in_a_thread, "step 'fails'"),
        (Pipeline([Phase("upload", fail_phase, attempts=2, backoff=0.001)]), "phase 'upload'"),
    ],
    ids=["loop", "thread", "phase"],
)
async def test_the_log_says_what_is_tried_again_and_why(
    queue: Queue, handler: Any, what: str, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO, "ropeway")
    async with Worker(queue, {"work": handler}):
        job = await queue.add("work")
        with pytest.raises(JobFailed, match="broken"):
            await job.result(timeout=PATIENCE)

    told = [record.getMessage() for record in caplog.records if "tried again" in record.getMessage()]
    tail = f"(letters {job.id}): RuntimeError: broken"
    assert told == [f"work failed at {what}, which is tried again in 1 ms {tail}"]


async def test_the_log_says_what_is_tried_again_in_a_process(
    queue: Queue, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO, "ropeway")
    async with Worker(queue, in_process(step_handlers.try_a_step)):
        job = await queue.add("work", [str(tmp_path / "notes"), "broken"])
        with pytest.raises(JobFailed, match="broken"):
            await job.result(timeout=PATIENCE)

    told = [record.getMessage() for record in caplog.records if "tried again" in record.getMessage()]
    assert len(told) == 2
    assert all("which is tried again at once" in line and line.endswith("broken") for line in told)
