"""Pipelines: phases in order, with stored progress and results, from the first that did not complete."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ropeway import (
    Backoff,
    Event,
    Flow,
    InvalidInput,
    InvalidOption,
    InvalidTask,
    Job,
    JobCancelled,
    JobFailed,
    JobHandle,
    Phase,
    PhaseContext,
    Pipeline,
    Queue,
    SyncJob,
    SyncPhaseContext,
    Unrecoverable,
    Worker,
    in_process,
)
from ropeway.errors import InvalidName
from ropeway.job.marks import PIPELINE, Mark
from ropeway.job.phases import start_mark
from ropeway.store.values import StallRules
from tests.client.fixtures import MakeQueue
from tests.client.tampering import Door, Outage, Tampering
from tests.patience import PATIENCE

from . import phase_handlers
from .watching import Ear, entered, told


class Phases:
    """Functions of phases that note their calls; those named in `failing` fail once each."""

    def __init__(self, *failing: str) -> None:
        self.calls: list[str] = []
        self.failing = list(failing)

    async def __call__(self, job: Job, ctx: PhaseContext) -> Any:
        self.calls.append(ctx.name)
        await ctx.progress(50)
        if ctx.name in self.failing:
            self.failing.remove(ctx.name)
            raise RuntimeError(f"{ctx.name} failed")
        return {"rows": len(ctx.name)}

    def pipeline(self, *names: str) -> Pipeline:
        return Pipeline([Phase(name, self) for name in names or ("download", "process", "upload")])


async def run(queue: Queue, pipeline: Pipeline, **options: Any) -> JobHandle:
    async with Worker(queue, {"import": pipeline}):
        job = await queue.add("import", **options)
        await job.result(timeout=PATIENCE)
        return job


async def run_to_failure(queue: Queue, pipeline: Pipeline, **options: Any) -> JobHandle:
    async with Worker(queue, {"import": pipeline}):
        job = await queue.add("import", **options)
        with pytest.raises(JobFailed):
            await job.result(timeout=PATIENCE)
        return job


async def states(job: JobHandle) -> list[tuple[str, str]]:
    return [(phase.name, phase.state) for phase in (await job.refresh()).phases]


async def events_of(queue: Queue, job: JobHandle, *names: str) -> list[Event]:
    """The events of a job that has ended."""
    last = await told(queue, (await job.state()), job)
    found = []
    async for event in queue.events("start"):
        if event.job_id == job.id and event.name in names:
            found.append(event)
        if event.id == last.id:
            return found
    raise AssertionError("the stream of events ended")


class TestRunning:
    async def test_a_phase_that_changes_a_result_changes_only_its_own_copy(self, queue: Queue):
        async def download(job: Job, ctx: PhaseContext) -> Any:
            return {"rows": [1, 2]}

        async def process(job: Job, ctx: PhaseContext) -> Any:
            ctx.phase_result("download")["rows"].append(3)
            ctx.phase_results()["download"]["rows"].append(4)

        async def upload(job: Job, ctx: PhaseContext) -> Any:
            return ctx.phase_result("download")

        job = await run(
            queue, Pipeline([Phase("download", download), Phase("process", process), Phase("upload", upload)])
        )

        assert await job.result(timeout=PATIENCE) == {"rows": [1, 2]}

    @pytest.mark.every_store
    async def test_phases_run_in_order_with_the_results_of_those_before(self, queue: Queue):
        async def download(job: Job, ctx: PhaseContext) -> Any:
            assert (ctx.name, ctx.overall, ctx.last_progress, ctx.phase_results()) == ("download", 0, None, {})
            await ctx.progress(50)
            assert ctx.overall == 17
            return {"rows": [1, 2]}

        async def process(job: Job, ctx: PhaseContext) -> Any:
            await ctx.progress(25)
            assert ctx.overall == 42
            assert ctx.phase_result("download") == {"rows": [1, 2]}
            return None

        async def upload(job: Job, ctx: PhaseContext) -> Any:
            await ctx.progress(80)
            assert ctx.overall == 93
            assert ctx.phase_results() == {"download": {"rows": [1, 2]}, "process": None}
            return job.data

        pipeline = Pipeline([Phase("download", download), Phase("process", process), Phase("upload", upload)])
        job = await run(queue, pipeline, data="a.csv")

        after = await job.refresh()
        assert after.result == "a.csv"
        assert [(phase.name, phase.state, phase.progress, phase.result) for phase in after.phases] == [
            ("download", "completed", 50, {"rows": [1, 2]}),
            ("process", "completed", 25, None),
            ("upload", "completed", 80, "a.csv"),
        ]
        for phase in after.phases:
            assert phase.started_at is not None
            assert phase.ended_at is not None
            assert phase.started_at <= phase.ended_at

    @pytest.mark.every_store
    async def test_events_come_in_order_once_their_change_is_stored(self, queue: Queue):
        job = await run(queue, Phases().pipeline())

        found = await events_of(queue, job, "phase-started", "phase-completed", "progress", "completed")
        said = [(event.name, event.data.get("phase", event.data.get("progress"))) for event in found]
        assert said == [
            ("progress", 0),
            ("phase-started", "download"),
            ("progress", 17),
            ("progress", 33),
            ("phase-completed", "download"),
            ("phase-started", "process"),
            ("progress", 50),
            ("progress", 67),
            ("phase-completed", "process"),
            ("phase-started", "upload"),
            ("progress", 83),
            ("phase-completed", "upload"),
            ("completed", None),
        ]
        assert found[1].data == {"phase": "download", "number": 1, "of": 3}

    async def test_the_phase_that_runs_is_active_with_its_progress(self, queue: Queue):
        entered_it, opened = asyncio.Event(), asyncio.Event()

        async def wait(job: Job, ctx: PhaseContext) -> None:
            await ctx.progress(12.5)
            entered_it.set()
            await opened.wait()

        pipeline = Pipeline([Phase("first", Phases()), Phase("second", wait), Phase("third", wait)])
        async with Worker(queue, {"import": pipeline}):
            job = await queue.add("import")
            await entered(entered_it)
            seen = await job.refresh()
            assert seen.progress == 38
            assert [(phase.state, phase.progress) for phase in seen.phases] == [
                ("completed", 50),
                ("active", 12.5),
                ("pending", None),
            ]
            opened.set()
            await job.result(timeout=PATIENCE)

    async def test_progress_is_heard_at_the_worker(self, queue: Queue):
        worker = Worker(queue, {"import": Phases().pipeline("only")})
        ear = Ear(worker, "progress")
        async with worker:
            await (await queue.add("import")).result(timeout=PATIENCE)

        assert [event.data for event in ear.events] == [{"progress": 50}]

    @pytest.mark.parametrize("kind", ["async", "thread", "process", "lambda"])
    async def test_functions_of_every_kind(self, queue: Queue, kind: str):
        async def process(job: Job, ctx: PhaseContext) -> Any:
            await ctx.progress(25)
            return [
                threading.get_ident(),
                ctx.name,
                ctx.overall,
                ctx.phase_result("download"),
                ctx.phase_results(),
                ctx.last_progress,
            ]

        def process_in_thread(job: SyncJob, ctx: SyncPhaseContext) -> Any:
            ctx.progress(25)
            assert not ctx.cancelled
            return [
                threading.get_ident(),
                ctx.name,
                ctx.overall,
                ctx.phase_result("download"),
                ctx.phase_results(),
                ctx.last_progress,
            ]

        function: Any = {
            "async": process,
            "thread": process_in_thread,
            "process": in_process(phase_handlers.process),
            "lambda": partial(lambda function, job, ctx: function(job, ctx), process),
        }[kind]
        job = await run(queue, Pipeline([Phase("download", Phases()), Phase("process", function)]))

        where, name, overall, download, results, last = (await job.refresh()).result
        assert (name, overall, download, last) == ("process", 62, {"rows": 8}, 25)
        assert results == {"download": {"rows": 8}}
        assert (where == threading.get_ident()) == (kind in ("async", "lambda"))
        assert where != os.getpid()
        assert (await job.refresh()).phases[1].progress == 25

    async def test_a_pipeline_of_a_task(self, queue: Queue):
        task = queue.task(Phases().pipeline(), name="import", attempts=2)
        async with Worker(queue):
            job = await task.add({"file": "a.csv"}, priority=3)
            assert await job.result(timeout=PATIENCE) == {"rows": 6}
            second = await task.call("b").add()
            assert await second.result(timeout=PATIENCE) == {"rows": 6}

        found = await job.refresh()
        assert (found.name, found.data, found.attempts, found.priority) == ("import", {"file": "a.csv"}, 2, 3)

    def test_without_a_loop(self, queue: Queue):
        task = queue.task(Phases().pipeline(), name="import")

        job = task.add_sync("a.csv")

        assert [phase.name for phase in job.refresh().phases] == ["download", "process", "upload"]

    async def test_steps_within_phases(self, queue: Queue):
        calls: list[str] = []

        async def fetch(page: str) -> str:
            calls.append(page)
            return page

        async def download(job: Job, ctx: PhaseContext) -> Any:
            pages = [await job.step(f"page-{n}", fetch, f"p{n}") for n in range(2)]
            if job.attempt == 1:
                raise RuntimeError("begin again")
            return pages

        job = await run(queue, Pipeline([Phase("download", download), Phase("upload", Phases())]), attempts=2)

        found = await job.refresh()
        assert calls == ["p0", "p1"]
        assert found.phases[0].result == ["p0", "p1"]
        assert [step.name for step in found.steps] == ["page-0", "page-1"]

    async def test_a_sleep_within_a_phase_begins_it_again(self, queue: Queue):
        calls: list[str] = []

        async def nap(job: Job, ctx: PhaseContext) -> str:
            calls.append(ctx.name)
            await job.sleep(0.01)
            return "rested"

        job = await run(queue, Pipeline([Phase("first", nap), Phase("last", Phases())]))

        found = await job.refresh()
        assert (calls, found.attempts_made) == (["first", "first"], 0)
        assert found.phases[0].result == "rested"

    @pytest.mark.every_store
    async def test_a_phase_that_goes_on_keeps_its_start_and_progress(self, queue: Queue):
        """After a sleep, say: its duration is that of all its parts."""
        starts: list[Any] = []

        async def nap(job: Job, ctx: PhaseContext) -> None:
            starts.append((await job.refresh()).phases[1].started_at)
            if ctx.last_progress is None:
                await ctx.progress(50)
            await job.sleep(0.01)

        job = await run(queue, Pipeline([Phase("first", Phases()), Phase("nap", nap), Phase("last", Phases())]))

        found = await job.refresh()
        assert starts == [found.phases[1].started_at] * 2
        events = [event async for event in queue.events("start", follow=False)]
        assert [event.data["progress"] for event in events if event.name == "progress"] == [0, 17, 33, 50, 67, 83]

    @pytest.mark.parametrize("is_grouped", [False, True])
    async def test_a_first_phase_that_gives_the_job_back_at_once_has_begun(self, queue: Queue, is_grouped: bool):
        async def later(job: Job, ctx: PhaseContext) -> None:
            if is_grouped:
                async with asyncio.TaskGroup() as group:
                    group.create_task(job.wait_for("payment"))
            job.postpone(PATIENCE)

        async with Worker(queue, {"import": Pipeline([Phase("first", later), Phase("second", later)])}):
            job = await queue.add("import")
            await told(queue, "delayed", job)

        assert await states(job) == [("first", "active"), ("second", "pending")]

    async def test_its_start_is_stored_before_the_job_is_given_back(self, tampered_queue: Queue, tampering: Tampering):
        order: list[str] = []
        tampering.after["update"] = lambda _: order.append("started")
        tampering.before["settle"] = lambda *_: order.append("given back")

        async def wait(job: Job, ctx: PhaseContext) -> None:
            await job.wait_for("payment")

        async with Worker(tampered_queue, {"import": Pipeline([Phase("first", wait)])}):
            job = await tampered_queue.add("import")
            await told(tampered_queue, "delayed", job)

        assert order == ["started", "given back"]

    async def test_the_first_phase_has_begun_though_its_first_write_was_cancelled(
        self, tampered_queue: Queue, tampering: Tampering
    ):
        door = Door()

        async def hold(job: Job) -> None:
            tampering.before["update"] = door.pass_through
            await job.progress(5)

        async def at_once() -> None:
            pass

        async def download(job: Job, ctx: PhaseContext) -> None:
            # The write of the step takes the start along, and waits for that of the other job.
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await job.step("one", at_once)
            door.opened.set()

        pipeline = Pipeline([Phase("download", download), Phase("process", Phases())])
        async with Worker(tampered_queue, {"hold": hold, "import": pipeline}):
            await tampered_queue.add("hold")
            await entered(door.reached)
            job = await tampered_queue.add("import")
            await job.result(timeout=PATIENCE)

        phases = (await job.refresh()).phases
        assert [(phase.name, phase.state) for phase in phases] == [("download", "completed"), ("process", "completed")]

    async def test_each_phase_gathers_its_own_children(self, queue: Queue):
        async def echo(job: Job) -> Any:
            return job.data

        async def first(job: Job, ctx: PhaseContext) -> Any:
            return await job.gather(Flow("echo", "a"), Flow("echo", "b"))

        async def second(job: Job, ctx: PhaseContext) -> Any:
            return await job.gather(Flow("echo", "c"))

        pipeline = Pipeline([Phase("first", first), Phase("second", second)])
        async with Worker(queue, {"import": pipeline, "echo": echo}):
            job = await queue.add("import")
            await job.result(timeout=PATIENCE)

        assert [phase.result for phase in (await job.refresh()).phases] == [["a", "b"], ["c"]]

    async def test_each_phase_has_its_own_sleeps(self, queue: Queue):
        calls: list[str] = []

        async def nap(job: Job, ctx: PhaseContext) -> None:
            calls.append(ctx.name)
            if calls == ["first", "first", "second"]:
                raise RuntimeError("before its sleep")
            await job.sleep(0.01)

        await run(queue, Pipeline([Phase("first", nap), Phase("second", nap)]), attempts=2)

        assert calls == ["first", "first", "second", "second", "second"]


class TestRetries:
    @pytest.mark.every_store
    async def test_a_retry_begins_at_the_phase_that_failed(self, queue: Queue):
        phases = Phases("process")
        seen: list[Any] = []

        async def process(job: Job, ctx: PhaseContext) -> Any:
            seen.append((job.attempt, ctx.last_progress, ctx.phase_results()))
            return await phases(job, ctx)

        pipeline = Pipeline([Phase("download", phases), Phase("process", process), Phase("upload", phases)])
        await run(queue, pipeline, attempts=2)

        assert phases.calls == ["download", "process", "process", "upload"]
        assert seen == [(1, None, {"download": {"rows": 8}}), (2, 50, {"download": {"rows": 8}})]

    @pytest.mark.every_store
    async def test_the_phase_that_failed_says_why(self, queue: Queue):
        job = await run_to_failure(queue, Phases("process").pipeline())

        found = await job.refresh()
        assert [(phase.state, phase.progress, phase.reason) for phase in found.phases] == [
            ("completed", 50, None),
            ("failed", 50, "RuntimeError: process failed"),
            ("pending", None, None),
        ]
        assert found.progress == 50

    async def test_a_failed_job_is_retried_by_hand_where_it_failed(self, queue: Queue):
        phases = Phases("process")
        job = await run_to_failure(queue, phases.pipeline())

        async with Worker(queue, {"import": phases.pipeline()}):
            await job.retry()
            await job.result(timeout=PATIENCE)

        assert phases.calls == ["download", "process", "process", "upload"]

    @pytest.mark.every_store
    async def test_or_from_an_earlier_phase(self, queue: Queue):
        phases = Phases("upload")
        job = await run_to_failure(queue, phases.pipeline())

        await job.retry(from_phase="process")
        async with Worker(queue, {"import": phases.pipeline()}):
            await job.result(timeout=PATIENCE)

        assert phases.calls == ["download", "process", "upload", "process", "upload"]

    async def test_not_from_one_behind_the_phase_that_failed(self, queue: Queue):
        job = await run_to_failure(queue, Phases("process").pipeline())
        with pytest.raises(InvalidOption, match="cannot be 'upload': 'process' comes before it, and has not completed"):
            await job.retry(from_phase="upload")
        assert await job.state() == "failed"

    @pytest.mark.every_store
    async def test_a_completed_job_runs_its_last_phase_again(self, queue: Queue):
        """Its end is no mark: the completion says it, until the retry."""
        phases = Phases()
        job = await run(queue, phases.pipeline())

        await job.retry()

        assert await states(job) == [("download", "completed"), ("process", "completed"), ("upload", "pending")]
        async with Worker(queue, {"import": phases.pipeline()}):
            assert await job.result(timeout=PATIENCE) == {"rows": 6}
        assert phases.calls == ["download", "process", "upload", "upload"]
        assert {state for _, state in await states(job)} == {"completed"}

    @pytest.mark.every_store
    async def test_the_phases_are_known_while_it_waits_to_begin_at_one(self, queue: Queue):
        """Its names stay, so that a cancel shows them, and another phase may be named."""
        phases = Phases("upload")
        job = await run_to_failure(queue, phases.pipeline())

        await job.retry(from_phase="process")
        assert await states(job) == [("download", "completed"), ("process", "pending"), ("upload", "pending")]
        await job.cancel()
        assert await states(job) == [("download", "completed"), ("process", "cancelled"), ("upload", "cancelled")]
        await job.retry(from_phase="download")
        assert await states(job) == [("download", "pending"), ("process", "pending"), ("upload", "pending")]

        async with Worker(queue, {"import": phases.pipeline()}):
            await job.result(timeout=PATIENCE)
        assert phases.calls == ["download", "process", "upload"] * 2

    async def test_phases_that_are_kept_keep_their_times(self, queue: Queue):
        phases = Phases("upload")
        job = await run_to_failure(queue, phases.pipeline())
        before = (await job.refresh()).phases[0]

        await job.retry(from_phase="upload")
        async with Worker(queue, {"import": phases.pipeline("check", "download", "process", "upload")}):
            await job.result(timeout=PATIENCE)

        after = (await job.refresh()).phases
        assert [phase.name for phase in after] == ["check", "download", "process", "upload"]
        assert after[1] == before
        assert all(phase.started_at and phase.ended_at and phase.started_at <= phase.ended_at for phase in after)
        assert phases.calls[3:] == ["check", "upload"]

    async def test_it_ends_at_once_if_the_pipeline_has_only_phases_that_completed(self, queue: Queue):
        phases = Phases("upload")
        job = await run_to_failure(queue, phases.pipeline())

        await job.retry(from_phase="upload")
        async with Worker(queue, {"import": phases.pipeline("download", "process")}):
            assert await job.result(timeout=PATIENCE) == {"rows": 7}

        assert await states(job) == [("download", "completed"), ("process", "completed")]

    async def test_a_changed_pipeline_is_refused_again_once_it_has_begun(self, queue: Queue):
        phases = Phases("upload", "upload")
        job = await run_to_failure(queue, phases.pipeline())
        await job.retry(from_phase="process")
        async with Worker(queue, {"import": phases.pipeline()}):
            with pytest.raises(JobFailed, match="upload failed"):
                await job.result(timeout=PATIENCE)

        await job.retry()
        async with Worker(queue, {"import": phases.pipeline("download", "convert")}):
            with pytest.raises(JobFailed, match="PipelineChanged"):
                await job.result(timeout=PATIENCE)

    async def test_a_completed_pipeline_is_done_to_100_percent(self, queue: Queue):
        assert (await (await run(queue, Phases().pipeline())).refresh()).progress == 100

        async def report(job: Job, ctx: PhaseContext) -> None:
            await job.progress({"rows": 3})

        job = await run(queue, Pipeline([Phase("only", report)]))
        assert (await job.refresh()).progress == {"rows": 3}

    async def test_a_completed_job_runs_again_from_a_phase(self, queue: Queue):
        phases = Phases()
        job = await run(queue, phases.pipeline())

        async with Worker(queue, {"import": phases.pipeline()}):
            await queue.retry(job.id, from_phase="upload")
            await told(queue, "completed", job, 2)

        assert phases.calls == ["download", "process", "upload", "upload"]

    @pytest.mark.every_store
    async def test_a_lost_worker_leaves_what_is_needed_to_go_on(self, queue: Queue):
        """As after `kill -9`: nothing is settled, and the lock runs out."""
        phases = Phases()
        hung = asyncio.Event()

        async def hang(job: Job, ctx: PhaseContext) -> None:
            await ctx.progress(30)
            hung.set()
            await asyncio.Event().wait()

        job = await queue.add("import")
        first = Pipeline([Phase("download", phases), Phase("process", hang), Phase("upload", phases)])
        async with Worker(queue, {"import": first}, grace=0):
            await entered(hung)
            await queue.pause()
            # Another worker's tick, at a time when the lock has run out.
            now = await queue.store.clock()
            await queue.store.tick(queue.name, StallRules(), now=now + 600_000)
        assert await states(job) == [("download", "completed"), ("process", "active"), ("upload", "pending")]
        last: list[Any] = []

        async def process(job: Job, ctx: PhaseContext) -> Any:
            last.append(ctx.last_progress)
            return ctx.phase_result("download")

        await queue.resume()
        second = Pipeline([Phase("download", phases), Phase("process", process), Phase("upload", phases)])
        async with Worker(queue, {"import": second}):
            await job.result(timeout=PATIENCE)

        assert last == [30]
        assert phases.calls == ["download", "upload"]

    async def test_a_job_that_failed_by_stalls_has_a_failed_phase(self, queue: Queue):
        await queue.add("import", id="import")
        [claimed] = await Worker(queue).claim()
        await claimed.run.write_marks(Mark(PIPELINE, '["a","b"]'), Mark(start_mark("a"), "null"))
        now = await queue.store.clock()
        await queue.store.tick(queue.name, StallRules(on_stalled="fail"), now=now + 600_000)

        job = await queue.get("import")
        assert job is not None
        first, second = job.snapshot.phases
        assert (first.state, second.state) == ("failed", "pending")
        assert first.reason == job.snapshot.reason
        assert first.ended_at is not None


class TestStepsOfPhases:
    async def test_names_are_those_of_the_phase_and_begin_again_with_it(self, queue: Queue):
        calls: list[str] = []

        async def note(phase: str) -> str:
            calls.append(phase)
            return phase

        async def phase(job: Job, ctx: PhaseContext) -> str:
            result: str = await job.step("fetch", note, ctx.name)
            assert result == ctx.name
            return result

        pipeline = Pipeline([Phase(name, phase) for name in ("download", "process", "upload")])
        job = await run(queue, pipeline)
        steps = [(step.phase, step.name) for step in (await job.refresh()).steps]
        assert sorted(steps) == [("download", "fetch"), ("process", "fetch"), ("upload", "fetch")]

        await job.retry(from_phase="process")
        async with Worker(queue, {"import": pipeline}):
            await job.result(timeout=PATIENCE)

        assert calls == ["download", "process", "upload", "process", "upload"]


class TestAttemptsOfPhases:
    @pytest.mark.parametrize("backoff", [Backoff.fixed(0.001), 0.001, "1 ms"])
    async def test_a_phase_is_tried_again_in_place(self, queue: Queue, backoff: Any):
        phases = Phases("process", "process")
        seen: list[Any] = []

        async def process(job: Job, ctx: PhaseContext) -> Any:
            seen.append((job.attempt, ctx.last_progress))
            return await phases(job, ctx)

        pipeline = Pipeline([Phase("download", phases), Phase("process", process, attempts=3, backoff=backoff)])
        job = await run(queue, pipeline)

        assert phases.calls == ["download", "process", "process", "process"]
        assert seen == [(1, None), (1, 50), (1, 50)]
        assert (await job.refresh()).attempts_made == 0

    async def test_then_the_attempts_of_the_job_count(self, queue: Queue):
        phases = Phases("process", "process", "process")
        pipeline = Pipeline([Phase("process", phases, attempts=2)])

        job = await run(queue, pipeline, attempts=2)

        assert len(phases.calls) == 4
        assert (await job.refresh()).attempts_made == 1

    @pytest.mark.parametrize("function", ["async", "process"])
    async def test_a_phase_that_is_tried_again_finds_the_results_of_its_steps(
        self, queue: Queue, tmp_path: Path, function: str
    ):
        notes = tmp_path / "notes"

        async def fail_once(job: Job, ctx: PhaseContext) -> None:
            await job.step("note", phase_handlers.note, str(notes), "once")
            if ctx.last_progress is None:
                await ctx.progress(50)
                raise RuntimeError("try again")

        given = fail_once if function == "async" else in_process(phase_handlers.note_and_fail_once)
        await run(queue, Pipeline([Phase("note", given, attempts=2)]), data=str(notes))

        assert notes.read_text() == "once\n"

    @pytest.mark.parametrize("function", ["async", "process"])
    async def test_an_unrecoverable_error_ends_all_attempts(self, queue: Queue, function: str):
        calls: list[int] = []

        async def give_up(job: Job, ctx: PhaseContext) -> None:
            calls.append(job.attempt)
            raise Unrecoverable("no luck")

        given = give_up if function == "async" else in_process(phase_handlers.give_up)
        job = await run_to_failure(queue, Pipeline([Phase("process", given, attempts=5)]), attempts=5)

        found = await job.refresh()
        assert (found.attempts_made, found.phases[0].reason) == (1, "Unrecoverable: no luck")
        assert len(calls) == (1 if function == "async" else 0)

    async def test_a_wait_that_is_over_is_not_tried_again(self, queue: Queue):
        calls: list[int] = []

        async def wait(job: Job, ctx: PhaseContext) -> None:
            calls.append(job.attempt)
            await job.wait_for("payment", timeout=0.01)

        job = await run_to_failure(queue, Pipeline([Phase("wait", wait, attempts=3)]), attempts=3)

        # Once until it waits, once more when that is over.
        assert calls == [1, 1]
        assert str((await job.refresh()).reason).startswith("SignalTimeout")

    async def test_nor_is_an_error_that_classify_calls_fatal(self, queue: Queue):
        phases = Phases("process", "process")
        pipeline = Pipeline([Phase("process", phases, attempts=3)])

        def classify(error: BaseException, job: Any) -> bool | None:
            return False if isinstance(error, RuntimeError) else None

        async with Worker(queue, {"import": pipeline}, classify=classify):
            job = await queue.add("import", attempts=3)
            with pytest.raises(JobFailed, match="process failed"):
                await job.result(timeout=PATIENCE)

        assert phases.calls == ["process"]

    async def test_nor_is_a_job_that_was_discarded(self, queue: Queue):
        calls: list[int] = []

        async def discard(job: Job, ctx: PhaseContext) -> None:
            calls.append(job.attempt)
            job.discard()
            raise RuntimeError("no luck")

        await run_to_failure(queue, Pipeline([Phase("process", discard, attempts=3)]), attempts=3)

        assert calls == [1]

    async def test_a_phase_in_a_process_that_crashed_is_tried_again(self, queue: Queue):
        pipeline = Pipeline([Phase("crunch", in_process(phase_handlers.crash_once), attempts=2)])

        job = await run(queue, pipeline)

        assert (await job.refresh()).result == 50

    async def test_a_phase_has_a_timeout(self, queue: Queue):
        async def hang(job: Job, ctx: PhaseContext) -> None:
            await asyncio.Event().wait()

        job = await run_to_failure(queue, Pipeline([Phase("hang", hang, timeout=0.01)]))

        assert (await job.refresh()).phases[0].reason == (
            "AttemptTimeout: phase 'hang' took longer than its timeout of 0.01 s"
        )

    async def test_a_thread_is_told_of_its_timeout_and_waited_for(self, queue: Queue):
        running = 0
        most = 0

        def hang(job: SyncJob, ctx: SyncPhaseContext) -> str:
            nonlocal running, most
            running += 1
            most = max(most, running)
            stop = threading.Event()
            while not ctx.cancelled:
                stop.wait(0.001)
            running -= 1
            return "late"

        job = await run_to_failure(queue, Pipeline([Phase("hang", hang, timeout=0.01, attempts=3)]))

        assert most == 1
        assert str((await job.refresh()).reason).startswith("AttemptTimeout")

    async def test_a_coroutine_that_a_def_function_returned_is_cancelled_by_the_timeout(self, queue: Queue):
        cancelled = asyncio.Event()

        async def hang() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()

        pipeline = Pipeline([Phase("download", lambda job, ctx: hang(), timeout=0.05)])
        async with Worker(queue, {"import": pipeline}) as worker:
            job = await queue.add("import")
            with pytest.raises(JobFailed, match=r"phase 'download' took longer than its timeout of 0\.05 s"):
                await job.result(timeout=PATIENCE)
            assert cancelled.is_set()
            assert worker.leaked == 0

    async def test_the_timeout_of_the_job_fails_its_phase(self, queue: Queue):
        async def hang(job: Job, ctx: PhaseContext) -> None:
            await asyncio.Event().wait()

        job = await run_to_failure(queue, Pipeline([Phase("hang", hang)]), timeout=0.05)

        phase = (await job.refresh()).phases[0]
        assert (phase.state, str(phase.reason)[:14]) == ("failed", "AttemptTimeout")

    @pytest.mark.parametrize("kind", ["on the loop", "in a thread"])
    async def test_a_phase_that_stops_at_the_timeout_of_the_job_has_not_completed(self, queue: Queue, kind: str):
        async def hang(job: Job, ctx: PhaseContext) -> str:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                return "half of it"
            return "all of it"

        def hang_in_thread(job: SyncJob, ctx: SyncPhaseContext) -> str:
            never = threading.Event()
            while not ctx.cancelled:
                never.wait(0.001)
            return "half of it"

        phases = Phases()
        function = hang if kind == "on the loop" else hang_in_thread
        job = await run_to_failure(queue, Pipeline([Phase("hang", function), Phase("last", phases)]), timeout=0.05)

        found = (await job.refresh()).phases
        assert [(phase.state, phase.result) for phase in found] == [("failed", None), ("pending", None)]
        assert str(found[0].reason).startswith("AttemptTimeout: the attempt took longer")
        assert phases.calls == []

    async def test_a_result_that_is_not_json_fails_for_good(self, queue: Queue):
        calls: list[int] = []

        async def download(job: Job, ctx: PhaseContext) -> Any:
            calls.append(job.attempt)
            return object()

        job = await run_to_failure(queue, Pipeline([Phase("download", download, attempts=3)]), attempts=3)

        assert calls == [1]
        assert "result" in str((await job.refresh()).phases[0].reason)


class TestCancelling:
    @pytest.mark.every_store
    async def test_a_running_job(self, queue: Queue):
        hung = asyncio.Event()

        async def hang(job: Job, ctx: PhaseContext) -> None:
            hung.set()
            await asyncio.Event().wait()

        pipeline = Pipeline([Phase("download", Phases()), Phase("process", hang), Phase("upload", hang)])
        async with Worker(queue, {"import": pipeline}):
            job = await queue.add("import", attempts=5)
            await entered(hung)
            await job.cancel("enough")
            with pytest.raises(JobCancelled):
                await job.result(timeout=PATIENCE)

        assert await states(job) == [("download", "completed"), ("process", "cancelled"), ("upload", "cancelled")]
        assert len(await events_of(queue, job, "cancelled")) == 1

    async def test_what_a_def_function_returned_does_not_begin(self, queue: Queue):
        begun: list[str] = []

        async def download(job: Job) -> None:
            begun.append(job.id)

        def call(job: Any, ctx: Any) -> Any:
            asyncio.run_coroutine_threadsafe(job.queue.cancel(job.id), loop).result(PATIENCE)
            while not ctx.cancelled:
                time.sleep(0.001)
            return download(job)

        loop = asyncio.get_running_loop()
        async with Worker(queue, {"import": Pipeline([Phase("download", call)])}):
            job = await queue.add("import")
            with pytest.raises(JobCancelled):
                await job.result(timeout=PATIENCE)

        assert begun == []

    @pytest.mark.every_store
    async def test_between_two_phases(self, queue: Queue):
        phases = Phases()

        async def cancel(job: Job, ctx: PhaseContext) -> str:
            await ctx.progress(10)
            await queue.cancel(job.id)
            with pytest.raises(asyncio.CancelledError):
                await asyncio.sleep(PATIENCE)
            return "done all the same"

        worker = Worker(queue, {"import": Pipeline([Phase("download", cancel), Phase("process", phases)])})
        async with worker:
            job = await queue.add("import", attempts=5)
            with pytest.raises(JobCancelled):
                await job.result(timeout=PATIENCE)

        assert phases.calls == []
        assert await states(job) == [("download", "cancelled"), ("process", "cancelled")]
        assert len(await events_of(queue, job, "cancelled")) == 1

    async def test_one_that_the_worker_has_not_heard_of_ends_with_the_next_phase(
        self, tampered_queue: Queue, tampering: Tampering
    ):
        """The phase ends after the cancel, and before the worker is told: what it writes then is refused."""
        queue, phases = tampered_queue, Phases()

        async def cancel(job: Job, ctx: PhaseContext) -> None:
            await queue.store.cancel(queue.name, [job.id])

        worker = Worker(queue, {"import": Pipeline([Phase("download", cancel), Phase("process", phases)])})
        async with worker:
            job = await queue.add("import", attempts=5)
            with pytest.raises(JobCancelled):
                await job.result(timeout=PATIENCE)

        assert phases.calls == []
        assert (await job.refresh()).state == "cancelled"
        assert len(await events_of(queue, job, "cancelled")) == 1

    @pytest.mark.every_store
    async def test_before_its_first_start(self, queue: Queue):
        task = queue.task(Phases().pipeline(), name="import")
        job = await task.add(delay="1 day")
        assert await states(job) == [("download", "pending"), ("process", "pending"), ("upload", "pending")]

        await job.cancel()

        assert await states(job) == [("download", "cancelled"), ("process", "cancelled"), ("upload", "cancelled")]
        assert len(await events_of(queue, job, "cancelled")) == 1

    async def test_before_its_first_start_one_that_was_added_by_its_name_has_no_phases(self, queue: Queue):
        job = await queue.add("import", delay="1 day")

        await job.cancel()

        assert await states(job) == []

    async def test_between_two_attempts(self, queue: Queue):
        async with Worker(queue, {"import": Phases("process").pipeline()}) as worker:
            ear = Ear(worker, "delayed")
            job = await queue.add("import", attempts=2, backoff="1 day")
            await ear.hear("delayed")
            await job.cancel()

        assert await states(job) == [("download", "completed"), ("process", "failed"), ("upload", "cancelled")]


class TestChanges:
    @pytest.mark.parametrize(
        ("names", "problem"),
        [
            (("download", "convert", "upload"), "new: 'convert'; gone: 'process'"),
            (("download", "upload"), "gone: 'process'"),
            (("download", "check", "process", "upload"), "new: 'check'"),
            (("process", "download", "upload"), "the order was download, process, upload"),
        ],
        ids=["renamed", "removed", "inserted", "moved"],
    )
    async def test_a_pipeline_that_changed_between_two_attempts_is_reported(
        self, queue: Queue, names: tuple[str, ...], problem: str
    ):
        job = await run_to_failure(queue, Phases("upload").pipeline())
        phases = Phases()

        await job.retry(reset=True)
        async with Worker(queue, {"import": phases.pipeline(*names)}):
            with pytest.raises(JobFailed, match="PipelineChanged") as failed:
                await job.result(timeout=PATIENCE)

        assert problem in failed.value.reason
        assert phases.calls == []
        assert await states(job) == [("download", "completed"), ("process", "completed"), ("upload", "failed")]

    @pytest.mark.parametrize("run_in", ["loop", "thread"])
    async def test_a_handler_without_phases_in_its_place_is_reported(self, queue: Queue, run_in: str):
        job = await run_to_failure(queue, Phases("upload").pipeline())
        calls: list[str] = []

        async def on_the_loop(job: Job) -> str:
            calls.append(job.id)
            return "done"

        def in_a_thread(job: SyncJob) -> str:
            calls.append(job.id)
            return "done"

        await job.retry(reset=True)
        async with Worker(queue, {"import": on_the_loop if run_in == "loop" else in_a_thread}):
            with pytest.raises(JobFailed, match=r"PipelineChanged.* without phases .*from_phase"):
                await job.result(timeout=PATIENCE)
            assert calls == []

            await job.retry(from_phase="process")
            assert await job.result(timeout=PATIENCE) == "done"

        assert await states(job) == [("download", "completed"), ("process", "pending"), ("upload", "pending")]

    async def test_it_goes_on_from_a_phase_that_is_named(self, queue: Queue):
        job = await run_to_failure(queue, Phases("upload").pipeline())
        phases = Phases()

        await job.retry(from_phase="process")
        async with Worker(queue, {"import": phases.pipeline("download", "convert", "upload")}):
            await job.result(timeout=PATIENCE)

        assert phases.calls == ["convert", "upload"]
        assert [name for name, _ in await states(job)] == ["download", "convert", "upload"]

    async def test_the_worker_decides_before_the_first_start(self, queue: Queue, make_queue: MakeQueue):
        job = await queue.task(Phases().pipeline("old"), name="import").add()

        async with Worker(make_queue(), {"import": Phases().pipeline("new")}):
            await job.result(timeout=PATIENCE)

        assert await states(job) == [("new", "completed")]


class TestTrouble:
    async def test_results_that_are_too_large_together_fail_for_good(self, make_queue: MakeQueue):
        calls: list[str] = []

        async def large(job: Job, ctx: PhaseContext) -> str:
            calls.append(ctx.name)
            return "x" * 3_000_000

        queue = make_queue(size_limit=4_000_000)
        job = await run_to_failure(queue, Pipeline([Phase(name, large) for name in "abcd"]), attempts=3)

        assert calls == ["a", "b", "c"]
        assert "at most 8,388,608 bytes in all" in str((await job.refresh()).reason)

    async def test_a_phase_cannot_complete_its_job(self, queue: Queue):
        async def complete(job: Job, ctx: PhaseContext) -> None:
            async with job.transaction():
                pass

        job = await run_to_failure(queue, Pipeline([Phase("a", complete), Phase("b", complete)]))

        assert "a phase cannot complete its job" in str((await job.refresh()).reason)

    async def test_a_phase_goes_on_after_a_short_outage(self, tampered_queue: Queue, tampering: Tampering):
        tampering.before["update"] = Outage(2)

        job = await run(tampered_queue, Phases().pipeline())

        assert {phase.state for phase in (await job.refresh()).phases} == {"completed"}

    async def test_three_phases_are_two_writes_and_one_completion(self, tampered_queue: Queue, tampering: Tampering):
        async def nothing(job: Job, ctx: PhaseContext) -> None:
            pass

        await run(tampered_queue, Pipeline([Phase(name, nothing) for name in "abc"]))

        assert tampering.calls["update"] == 2

    async def test_the_first_phase_does_not_wait_for_its_start_to_be_stored(
        self, tampered_queue: Queue, tampering: Tampering
    ):
        door = Door()
        tampering.before["update"] = door.pass_through

        async def first(job: Job, ctx: PhaseContext) -> None:
            await door.reached.wait()
            assert (await job.refresh()).progress is None
            door.opened.set()

        job = await run(tampered_queue, Pipeline([Phase("only", first)]))

        assert await states(job) == [("only", "completed")]
        events = await events_of(tampered_queue, job, "phase-started", "phase-completed")
        assert [event.name for event in events] == ["phase-started", "phase-completed"]

    async def test_a_first_phase_that_a_timeout_ends_is_announced_once(self, queue: Queue):
        async def first(job: Job, ctx: PhaseContext) -> None:
            await asyncio.sleep(PATIENCE)

        async with Worker(queue, Pipeline([Phase("only", first)])):
            job = await queue.add("import", timeout=0.05)
            with pytest.raises(JobFailed):
                await job.result(timeout=PATIENCE)

        events = await events_of(queue, job, "phase-started", "failed")
        assert [event.name for event in events] == ["phase-started", "failed"]

    async def test_a_first_phase_stops_if_its_start_is_refused(self, tampered_queue: Queue, tampering: Tampering):
        queue, stopped = tampered_queue, asyncio.Event()

        async def take_away(*_: Any) -> None:
            tampering.before.clear()
            await queue.store.cancel(queue.name, ["import"])

        tampering.before["update"] = take_away

        async def first(job: Job, ctx: PhaseContext) -> None:
            try:
                await asyncio.sleep(PATIENCE)
            finally:
                stopped.set()

        async with Worker(queue, {"import": Pipeline([Phase("first", first)])}):
            await queue.add("import", id="import")
            async with asyncio.timeout(PATIENCE):
                await stopped.wait()

    async def test_a_failure_beside_an_unanswered_start_keeps_the_phases(
        self, tampered_queue: Queue, tampering: Tampering
    ):
        """The attempt is broken off by its timeout, while the store has not answered to the start of its phase."""
        door = Door()
        tampering.before["update"] = door.pass_through

        async def first(job: Job, ctx: PhaseContext) -> None:
            await asyncio.sleep(PATIENCE)

        async with Worker(tampered_queue, {"import": Pipeline([Phase("first", first), Phase("second", first)])}):
            job = await tampered_queue.add("import", timeout=0.05)
            with pytest.raises(JobFailed):
                await job.result(timeout=PATIENCE)
            door.opened.set()

        assert await states(job) == [("first", "failed"), ("second", "pending")]


class TestBadInput:
    def test_a_pipeline_has_phases(self):
        with pytest.raises(InvalidInput, match="at least one phase"):
            Pipeline([])
        with pytest.raises(InvalidInput, match="made of Phase"):
            Pipeline(["download"])  # type: ignore[list-item]  # the point
        with pytest.raises(InvalidOption, match=r"phases.* cannot be None: give a list"):
            Pipeline(None)  # type: ignore[arg-type]  # the point
        with pytest.raises(InvalidOption, match="<Phase 'a'>: give a list"):
            Pipeline(Phase("a", Phases()))  # type: ignore[arg-type]  # the point
        with pytest.raises(InvalidInput, match="at most 100 phases"):
            Phases().pipeline(*map(str, range(101)))
        with pytest.raises(InvalidInput, match="two phases are named 'a'"):
            Phases().pipeline("a", "b", "a")

    @pytest.mark.parametrize("name", ["", "a\n", "x" * 300, 5, None])
    def test_a_phase_has_a_name(self, name: Any):
        with pytest.raises(InvalidName, match="phase name"):
            Phase(name, Phases())

    def test_a_phase_has_a_function_and_sound_options(self):
        with pytest.raises(InvalidOption, match="function"):
            Phase("a", 5)
        with pytest.raises(InvalidOption, match="attempts"):
            Phase("a", Phases(), attempts=0)
        with pytest.raises(InvalidInput, match="timeout"):
            Phase("a", Phases(), timeout="soon")
        with pytest.raises(InvalidOption, match="leave it out for no timeout"):
            Phase("a", Phases(), timeout=0)
        with pytest.raises(InvalidOption, match="backoff"):
            Phase("a", Phases(), backoff=Backoff.custom("mine"))
        with pytest.raises(InvalidOption, match="use a duration"):
            Phase("a", Phases(), backoff="soon")

    def test_functions_that_cannot_be_phases_are_refused_by_the_worker(self, queue: Queue):
        async def of_the_job(job: Job) -> None: ...
        async def of_another_job(job: SyncJob, ctx: PhaseContext) -> None: ...
        def many(job: SyncJob, ctx: SyncPhaseContext) -> Any:
            yield 1

        def local(job: Any, ctx: Any) -> None: ...

        for function, problem in (
            (of_the_job, "the job and the context"),
            (of_another_job, "asks for a SyncJob"),
            (many, "generator"),
            (in_process(local), "at the top of a module"),
        ):
            with pytest.raises(InvalidOption, match=problem):
                Worker(queue, {"import": Pipeline([Phase("a", function)])})

    def test_a_task_of_a_pipeline_has_a_name_of_its_own(self, queue: Queue):
        pipeline = Phases().pipeline()
        with pytest.raises(InvalidOption, match="name"):
            queue.task(pipeline)  # type: ignore[call-overload]  # the point
        with pytest.raises(InvalidOption, match="cron"):
            queue.task(pipeline, name="import", cron="* * * * *")
        queue.task(pipeline, name="import")
        with pytest.raises(InvalidTask, match="of this name"):
            queue.task(pipeline, name="import")

    @pytest.mark.parametrize("percent", [-1, 101, True, "50", None, float("nan")])
    async def test_progress_is_a_number_from_0_to_100(self, queue: Queue, percent: Any):
        async def wrong(job: Job, ctx: PhaseContext) -> None:
            await ctx.progress(percent)

        job = await run_to_failure(queue, Pipeline([Phase("a", wrong)]))

        assert "use a number from 0 to 100" in str((await job.refresh()).reason)

    async def test_a_result_that_is_not_there_yet(self, queue: Queue):
        async def ahead(job: Job, ctx: PhaseContext) -> None:
            ctx.phase_result("upload")

        job = await run_to_failure(queue, Pipeline([Phase("download", ahead), Phase("upload", Phases())]))

        assert "'upload' has no result yet; those before 'download': none" in str((await job.refresh()).reason)

    async def test_from_a_phase_that_it_has_not(self, queue: Queue):
        job = await run_to_failure(queue, Phases("upload").pipeline())
        plain = await queue.add("plain")

        with pytest.raises(InvalidOption, match="began with the phases download, process, upload"):
            await job.retry(from_phase="convert")
        with pytest.raises(InvalidOption, match="no pipeline has run it"):
            await plain.retry(from_phase="convert")
