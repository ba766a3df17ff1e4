"""Phases, steps and signals on the command line."""

from __future__ import annotations

import pytest

from ropeway import Job, Phase, PhaseContext, Pipeline, Queue, Worker
from ropeway.cli.exit_codes import ExitCode
from ropeway.testing.factories import QUEUE
from tests.patience import PATIENCE

from .conftest import Arrange, Ropeway


async def download(job: Job, ctx: PhaseContext) -> dict[str, int]:
    await ctx.progress(50)
    return {"rows": 3}


async def process(job: Job, ctx: PhaseContext) -> None:
    await ctx.progress(25)
    raise ValueError("row 2 is bad")


PIPELINE = Pipeline([Phase("download", download), Phase("process", process), Phase("upload", process)])


@pytest.fixture
def failed(arrange: Arrange) -> str:
    """The id of an import whose second phase failed."""

    async def run(queue: Queue) -> str:
        async with Worker(queue, {"import": PIPELINE}):
            job = await queue.add("import", id="import-42")
            with pytest.raises(Exception, match="row 2"):
                await job.result(timeout=PATIENCE)
        return job.id

    id: str = arrange.on_queue(run)
    return id


def waiting_for_payment(arrange: Arrange) -> str:
    async def work(job: Job) -> object:
        await job.step("page-1", dict, rows=3)
        return await job.wait_for("payment")

    async def run(queue: Queue) -> str:
        async with Worker(queue, work):
            job = await queue.add("order", id="order-42")
            async for event in queue.events("start"):
                if event.name == "delayed":
                    break
        return job.id

    id: str = arrange.on_queue(run)
    return id


def test_phases_are_shown_as_a_timeline_with_durations(ropeway: Ropeway, failed: str):
    said = ropeway("jobs", "show", failed).out

    assert "Phases (1 of 3 completed)" in said
    [first] = [line for line in said.splitlines() if "completed  download" in line]
    assert first.split()[-3:] == ["completed", "download", '{"rows":3}'], "how far it reported to be says nothing now"
    assert "ms" in first or " s " in first
    assert "failed     process    25 %  ValueError: row 2 is bad" in said
    assert "pending    upload" in said


def test_of_reports_of_progress_in_a_row_the_timeline_has_the_last(ropeway: Ropeway, arrange: Arrange):
    async def count(job: Job) -> None:
        for part in (10, 20, 30):
            await job.progress(part)

    async def run(queue: Queue) -> str:
        async with Worker(queue, count):
            job = await queue.add("count")
            await job.result(timeout=PATIENCE)
        return job.id

    id: str = arrange.on_queue(run)
    shown = ropeway("jobs", "show", id)
    document = ropeway("jobs", "show", id, "--json").json

    assert [line.split()[-1] for line in shown.out.splitlines() if "progress=" in line] == ["progress=30"]
    assert [entry["name"] for entry in document["timeline"]].count("progress") == 3


def test_as_json_they_are_part_of_the_job(ropeway: Ropeway, failed: str):
    phases = ropeway("jobs", "show", failed, "--json").json["job"]["phases"]

    assert [(phase["name"], phase["state"], phase["progress"]) for phase in phases] == [
        ("download", "completed", 50),
        ("process", "failed", 25),
        ("upload", "pending", None),
    ]
    assert phases[0]["started_at"].endswith("Z")


def test_steps_are_shown_with_their_durations_and_results(ropeway: Ropeway, arrange: Arrange):
    said = ropeway("jobs", "show", waiting_for_payment(arrange)).out

    assert "Steps (2)" in said
    [step] = [line for line in said.splitlines() if "page-1" in line]
    assert step.endswith('ms  step    page-1   {"rows":3}')
    [wait] = [line for line in said.splitlines() if line.endswith("  wait    payment")]
    assert "ms" in wait or " s " in wait, "how long it waits so far"
    assert "due           when it is woken" in said
    assert 'due_at="when woken"' in said


def test_a_list_says_that_a_job_is_due_when_it_is_woken(ropeway: Ropeway, arrange: Arrange):
    id = waiting_for_payment(arrange)
    [line] = [line for line in ropeway("jobs", "list").out.splitlines() if line.startswith(id)]

    assert line.endswith("  due when it is woken")


def test_a_plain_job_has_neither(ropeway: Ropeway, arrange: Arrange):
    said = ropeway("jobs", "show", arrange.job("completed").id).out

    assert "Phases" not in said
    assert "Steps" not in said


class TestRetry:
    def test_it_begins_at_the_phase_that_is_named(self, ropeway: Ropeway, arrange: Arrange, failed: str):
        assert ropeway("jobs", "retry", failed, "--from-phase", "download").code == ExitCode.OK

        job = arrange.on_queue(lambda queue: queue.get(failed))
        assert job.snapshot.state == "waiting"
        assert [phase.state for phase in job.snapshot.phases] == ["pending", "pending", "pending"]

    def test_all_that_failed_can_begin_there(self, ropeway: Ropeway, failed: str):
        ran = ropeway("jobs", "retry", "--queue", QUEUE, "--from-phase", "process", "--yes", "--json")

        assert ran.code == ExitCode.OK

    def test_a_phase_that_it_has_not_is_refused(self, ropeway: Ropeway, arrange: Arrange, failed: str):
        refused = ropeway("jobs", "retry", failed, "--from-phase", "convert")

        assert refused.code != ExitCode.OK
        assert "began with the phases download, process, upload" in refused.err
        assert arrange.on_queue(lambda queue: queue.get(failed)).snapshot.state == "failed"


class TestSignal:
    def test_a_signal_wakes_the_job(self, ropeway: Ropeway, arrange: Arrange):
        id = waiting_for_payment(arrange)

        ran = ropeway("jobs", "signal", id, "payment", '{"euro": 5}')

        assert (ran.code, ran.out, ran.err) == (ExitCode.OK, f"{id} signalled\n", "")
        assert arrange.on_queue(lambda queue: queue.get(id)).snapshot.state == "waiting"

    def test_data_may_come_from_standard_input_or_be_left_out(self, ropeway: Ropeway, arrange: Arrange):
        job = arrange.job()

        assert ropeway("jobs", "signal", job.id, "payment", "-", given="[1, 2]").code == ExitCode.OK
        ran = ropeway("jobs", "signal", job.id, "approved", "--json")

        assert ran.json == {"id": job.id, "queue": QUEUE, "signal": "approved", "waits_for": None}

    def test_one_that_the_job_does_not_wait_for_is_sent_with_a_warning(self, ropeway: Ropeway, arrange: Arrange):
        id = waiting_for_payment(arrange)

        ran = ropeway("jobs", "signal", id, "paymnet")
        assert (ran.code, ran.out) == (ExitCode.OK, f"{id} signalled\n")
        assert f"Warning: {id} waits for 'payment', not for 'paymnet'" in ran.err

        ran = ropeway("jobs", "signal", id, "paymnet", "--json")
        assert (ran.json["signal"], ran.json["waits_for"]) == ("paymnet", "payment")
        ran = ropeway("jobs", "signal", id, "payment", "--json")
        assert (ran.json["waits_for"], ran.err) == ("payment", "")

    def test_what_cannot_be_signalled_is_refused(self, ropeway: Ropeway, arrange: Arrange):
        ended, open_ = arrange.job("completed"), arrange.job()

        assert "completed" in ropeway("jobs", "signal", ended.id, "payment").err
        assert ropeway("jobs", "signal", "nobody", "payment").code != ExitCode.OK
        assert "not JSON" in ropeway("jobs", "signal", open_.id, "payment", "{").err
        assert "signal name" in ropeway("jobs", "signal", open_.id, "").err
