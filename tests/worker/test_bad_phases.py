"""Whatever a phase does, its job gets an end and the worker lives."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from typing import Any

import pytest

from ropeway import Job, JobFailed, Phase, PhaseContext, Pipeline, Queue, SyncJob, SyncPhaseContext, Worker
from ropeway.errors import JobFinished
from ropeway.job.failure import REASON_LIMIT, TRACE_LIMIT
from tests.client.tampering import Tampering
from tests.patience import PATIENCE

from .bad_functions import EXITS, ODD_ERRORS, exit_code_of, fork
from .watching import Ear, ThreadGate, entered, told


async def easy(job: Job, ctx: PhaseContext) -> str:
    return "fine"


def second(function: Any, **options: Any) -> Pipeline:
    """A pipeline whose second phase is the bad one."""
    return Pipeline([Phase("download", easy), Phase("process", function, **options), Phase("upload", easy)])


async def reason_of(queue: Queue, pipeline: Pipeline, **options: Any) -> str:
    """Why the job and its phase failed; and shows that the worker lives on."""
    async with Worker(queue, {"bad": pipeline, "good": Pipeline([Phase("only", easy)])}, concurrency=1):
        job = await queue.add("bad", **options)
        with pytest.raises(JobFailed) as failed:
            await job.result(timeout=PATIENCE)
        assert await (await queue.add("good")).result(timeout=PATIENCE) == "fine"
    phases = (await job.refresh()).phases
    assert [phase.state for phase in phases] == ["completed", "failed", "pending"]
    assert phases[1].reason == failed.value.reason
    return failed.value.reason


class Stubborn:
    """A function of a phase that ignores its cancellation, and returns when it is let go."""

    def __init__(self) -> None:
        self.opened, self.left = asyncio.Event(), asyncio.Event()
        self.runs = 0
        self.error: BaseException | None = None

    async def __call__(self, job: Job, ctx: PhaseContext) -> str:
        self.runs += 1
        while not self.opened.is_set():
            try:
                await self.opened.wait()
            except asyncio.CancelledError:
                continue
        try:
            await ctx.progress(50)
        except JobFinished as error:
            self.error = error
        self.left.set()
        return "late"


class TestErrors:
    @pytest.mark.parametrize("kind", EXITS)
    async def test_an_async_phase_may_raise_anything(self, queue: Queue, kind: type[BaseException]):
        async def phase(job: Job, ctx: PhaseContext) -> None:
            raise kind

        assert kind.__name__ in await reason_of(queue, second(phase))

    @pytest.mark.parametrize("kind", EXITS)
    async def test_a_def_phase_may_raise_anything(self, queue: Queue, kind: type[BaseException]):
        def phase(job: SyncJob, ctx: SyncPhaseContext) -> None:
            raise kind

        assert kind.__name__ in await reason_of(queue, second(phase))

    @pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError])
    async def test_also_one_with_attempts_and_a_timeout(self, queue: Queue, kind: type[BaseException]):
        async def phase(job: Job, ctx: PhaseContext) -> None:
            raise kind

        assert kind.__name__ in await reason_of(queue, second(phase, attempts=2, timeout=PATIENCE))

    async def test_sys_exit_ends_the_attempt_and_not_the_worker(self, queue: Queue):
        async def phase(job: Job, ctx: PhaseContext) -> None:
            sys.exit(3)

        assert await reason_of(queue, second(phase)) == "SystemExit: 3"

    async def test_endless_recursion_fails_the_attempt_with_a_short_trace(self, queue: Queue):
        def recurse() -> None:
            recurse()

        async def phase(job: Job, ctx: PhaseContext) -> None:
            recurse()

        assert (await reason_of(queue, second(phase))).startswith("RecursionError")
        job = (await queue.find("failed")).jobs[0]
        [failure] = (await queue.history(job.id)).failures
        assert 0 < len(failure.trace) <= TRACE_LIMIT

    @ODD_ERRORS
    async def test_the_reason_of_an_odd_error_is_kept_as_well_as_can_be(
        self, queue: Queue, error: Exception, told: str
    ):
        async def phase(job: Job, ctx: PhaseContext) -> None:
            raise error

        reason = await reason_of(queue, second(phase))
        assert told in reason
        assert len(reason.encode()) <= REASON_LIMIT


class TestBlockedLoop:
    async def test_a_phase_that_blocks_the_loop_keeps_its_lock_and_is_named(
        self, tampered_queue: Queue, tampering: Tampering
    ):
        renewed = threading.Semaphore(0)
        tampering.after["renew"] = lambda _: renewed.release()

        async def block(job: Job, ctx: PhaseContext) -> str:
            began = time.monotonic()
            while time.monotonic() - began < 0.4:
                assert renewed.acquire(timeout=PATIENCE)
            return "blocked"

        worker = Worker(tampered_queue, {"import": second(block)}, lock_duration=0.8, stalled_interval=0.05)
        ear = Ear(worker, "slow-loop", "lock-lost", "stalled")
        async with worker:
            job = await tampered_queue.add("import")
            assert await job.result(timeout=PATIENCE) == "fine"
            slow = await ear.hear("slow-loop")
        assert slow.job is not None
        assert slow.job.id == job.id
        assert ear.names == ["slow-loop"]

    async def test_its_timeout_is_enforced_when_the_loop_comes_back(self, queue: Queue):
        async def block(job: Job, ctx: PhaseContext) -> str:
            threading.Event().wait(0.1)
            return "late"

        assert (await reason_of(queue, second(block, timeout=0.02))).startswith("AttemptTimeout")


class TestTimeouts:
    async def test_a_phase_that_ignores_its_timeout_and_returns_late_has_failed(self, queue: Queue):
        calls: list[str] = []

        async def late(job: Job, ctx: PhaseContext) -> str:
            calls.append(ctx.name)
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                return "late"
            return "never"

        reason = await reason_of(queue, second(late, timeout=0.02, attempts=2))

        assert reason == "AttemptTimeout: phase 'process' took longer than its timeout of 0.02 s"
        assert calls == ["process", "process"]

    async def test_one_that_does_not_stop_is_given_up_and_its_slot_replaced(self, queue: Queue):
        stubborn = Stubborn()
        pipelines = {"bad": second(stubborn, timeout=0.05, attempts=3), "good": Pipeline([Phase("only", easy)])}
        worker = Worker(queue, pipelines, concurrency=1, cancel_grace=0.05)
        ear = Ear(worker, "leaked")
        async with worker:
            job = await queue.add("bad", timeout="1 hour")
            with pytest.raises(JobFailed, match=r"AttemptTimeout.*0\.05 s"):
                await job.result(timeout=PATIENCE)
            leaked = await ear.hear("leaked")
            assert leaked.job is not None
            assert (leaked.job.id, worker.leaked) == (job.id, 1)
            assert await (await queue.add("good")).result(timeout=PATIENCE) == "fine"
            stubborn.opened.set()
            await entered(stubborn.left)
            assert await (await queue.add("good")).result(timeout=PATIENCE) == "fine"
            assert worker.leaked == 0
        assert type(stubborn.error) is JobFinished
        assert stubborn.runs == 1
        assert [phase.state for phase in (await job.refresh()).phases] == ["completed", "failed", "pending"]

    async def test_a_thread_that_does_not_stop_is_given_up_and_replaced(self, queue: Queue):
        gate = ThreadGate(heeds=False)

        def hang(job: SyncJob, ctx: SyncPhaseContext) -> str:
            return gate(ctx)

        def quick(job: SyncJob, ctx: SyncPhaseContext) -> str:
            return "fine"

        pipelines = {"bad": second(hang, timeout=0.05, attempts=3), "good": Pipeline([Phase("only", quick)])}
        worker = Worker(queue, pipelines, concurrency=1, cancel_grace=0.05)
        ear = Ear(worker, "leaked")
        try:
            async with worker:
                job = await queue.add("bad")
                with pytest.raises(JobFailed, match=r"AttemptTimeout.*0\.05 s"):
                    await job.result(timeout=PATIENCE)
                await ear.hear("leaked")
                assert worker.leaked == 1
                assert await (await queue.add("good")).result(timeout=PATIENCE) == "fine"
        finally:
            gate.opened.set()
        assert [phase.state for phase in (await job.refresh()).phases] == ["completed", "failed", "pending"]

    async def test_no_phase_begins_after_one_that_ignored_the_timeout_of_the_job(self, queue: Queue):
        calls: list[str] = []

        async def late(job: Job, ctx: PhaseContext) -> None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                calls.append(ctx.name)

        async def note(job: Job, ctx: PhaseContext) -> None:
            calls.append(ctx.name)

        pipeline = Pipeline([Phase("first", late), Phase("second", note)])
        async with Worker(queue, {"import": pipeline}):
            job = await queue.add("import", timeout=0.05)
            with pytest.raises(JobFailed, match="AttemptTimeout"):
                await job.result(timeout=PATIENCE)

        assert calls == ["first"]
        assert [phase.state for phase in (await job.refresh()).phases] == ["failed", "pending"]


class TestStrays:
    async def test_a_task_that_outlives_its_phase_cannot_report_progress(self, queue: Queue):
        ended = asyncio.Event()
        errors: list[BaseException] = []
        tasks: list[asyncio.Task[None]] = []

        async def stray(ctx: PhaseContext) -> None:
            await ended.wait()
            try:
                await ctx.progress(99)
            except JobFinished as error:
                errors.append(error)

        async def download(job: Job, ctx: PhaseContext) -> None:
            tasks.append(asyncio.create_task(stray(ctx)))
            await ctx.progress(50)

        async def process(job: Job, ctx: PhaseContext) -> None:
            ended.set()
            await tasks[0]
            await ctx.progress(10)

        async with Worker(queue, {"import": Pipeline([Phase("download", download), Phase("process", process)])}):
            job = await queue.add("import")
            await job.result(timeout=PATIENCE)

        [error] = errors
        assert "phase 'download'" in str(error)
        assert "await what a phase starts" in str(error)
        assert [phase.progress for phase in (await job.refresh()).phases] == [50, 10]

    async def test_nor_after_an_attempt_of_it_that_failed(self, queue: Queue):
        contexts: list[PhaseContext] = []

        async def phase(job: Job, ctx: PhaseContext) -> None:
            contexts.append(ctx)
            if len(contexts) == 1:
                raise RuntimeError("try again")
            with pytest.raises(JobFinished, match="phase 'process'"):
                await contexts[0].progress(99)
            await ctx.progress(10)

        async with Worker(queue, {"import": second(phase, attempts=2)}):
            job = await queue.add("import")
            await job.result(timeout=PATIENCE)

        assert (await job.refresh()).phases[1].progress == 10


async def test_a_forked_child_that_comes_back_from_its_phase_ends_there(queue: Queue, caplog: pytest.LogCaptureFixture):
    async def on_the_loop(job: Job, ctx: PhaseContext) -> int:
        child = fork()
        return await exit_code_of(child) if child else 0

    def in_a_thread(job: SyncJob, ctx: SyncPhaseContext) -> int:
        child = fork()
        return asyncio.run(exit_code_of(child)) if child else 0

    async with Worker(queue, {"loop": second(on_the_loop), "thread": second(in_a_thread)}):
        for name in ("loop", "thread", "loop"):
            job = await queue.add(name)
            assert await job.result(timeout=PATIENCE) == "fine"
            assert (await job.refresh()).phases[1].result == 1


async def test_the_first_phase_may_fork_too(queue: Queue):
    """Before its start is stored: the child stores nothing."""

    async def split(job: Job, ctx: PhaseContext) -> int:
        child = fork()
        return await exit_code_of(child) if child else 0

    async with Worker(queue, {"import": Pipeline([Phase("split", split), Phase("rest", easy)])}):
        job = await queue.add("import")
        assert await job.result(timeout=PATIENCE) == "fine"
        assert (await told(queue, "phase-completed", job)).data["phase"] == "split"
    assert (await job.refresh()).phases[0].result == 1
