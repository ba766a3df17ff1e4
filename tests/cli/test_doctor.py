"""What is wrong with a store and its queues."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from ropeway.cli.exit_codes import ExitCode
from ropeway.client.workers import WORKER_RECORDS, WorkerInfo
from ropeway.doctor.examining import examine_clock
from ropeway.job.extras import Extras, Origin
from ropeway.job.schedules import Rule, ScheduleState, Template
from ropeway.store.contract import Store
from ropeway.store.values import Record, ScheduleWrite
from ropeway.testing.arrange import job_in
from ropeway.testing.factories import MINUTE, NOW, QUEUE

from .conftest import Arrange, Ropeway


def about_queue(ropeway: Ropeway) -> list[tuple[str, str]]:
    findings: list[dict[str, Any]] = ropeway("doctor", "--json").json["findings"]
    return [(finding["level"], finding["what"]) for finding in findings if finding["check"] == f"queue {QUEUE}"]


def serve(arrange: Arrange, *handlers: str, paused: bool = False) -> None:
    """A worker that says it is there."""
    info = WorkerInfo("w", "w", "host", 1, (QUEUE,), {QUEUE: handlers or None}, 10, 0, NOW, paused)
    remember(arrange, info)


def remember(arrange: Arrange, info: WorkerInfo) -> None:
    record = Record(WORKER_RECORDS, info.id, msgspec.json.encode(info).decode())
    arrange.on_store(lambda store: store.remember(record, lasting=MINUTE))


def test_a_store_in_good_order_is_well(ropeway: Ropeway, arrange: Arrange):
    arrange.job("completed")
    serve(arrange)

    ran = ropeway("doctor")
    document = ropeway("doctor", "--json").json

    assert ran.code == ExitCode.OK
    assert document["ok"]
    assert {"store", "sqlite", "schema", "permissions", "wal", "file system", "disk space", "clock"} <= {
        finding["check"] for finding in document["findings"]
    }
    assert about_queue(ropeway) == [("ok", "1 worker, 0 waiting, 0 active")]


def test_a_store_that_is_not_there_yet_is_no_problem_and_is_not_made(ropeway: Ropeway, tmp_path: Path):
    ran = ropeway("doctor")

    assert ran.code == ExitCode.OK
    assert "not made yet" in ran.out
    assert list(tmp_path.iterdir()) == []


def test_a_place_where_no_store_can_be_made_is_a_problem(ropeway: Ropeway, tmp_path: Path):
    ran = ropeway("doctor", "--url", f"sqlite:///{tmp_path}/nowhere/jobs.db")

    assert ran.code == ExitCode.FAILED
    assert "not made yet" not in ran.out


def test_a_file_that_is_no_store_is_a_problem(ropeway: Ropeway, tmp_path: Path):
    (tmp_path / "ropeway.db").write_bytes(b"x" * 5000)

    ran = ropeway("doctor")

    assert ran.code == ExitCode.FAILED
    assert "problem  file" in ran.out


def test_memory_is_examined_too(ropeway: Ropeway):
    assert ropeway("doctor", "--url", "memory://").code == ExitCode.OK


def test_jobs_without_a_worker_are_a_problem(ropeway: Ropeway, arrange: Arrange):
    arrange.job()

    assert about_queue(ropeway) == [("problem", "1 job to do, and no worker")]
    assert ropeway("doctor").code == ExitCode.FAILED


def test_jobs_that_no_worker_has_a_handler_for_are_a_problem(ropeway: Ropeway, arrange: Arrange):
    arrange.job(name="print")
    serve(arrange, "send")

    [(level, what)] = about_queue(ropeway)

    assert (level, "'print'" in what) == ("problem", True)


def test_a_handler_of_another_queue_of_the_same_worker_does_not_count(ropeway: Ropeway, arrange: Arrange):
    arrange.job(name="summarize")
    handlers: dict[str, tuple[str, ...] | None] = {QUEUE: ("fetch",), "reports": ("summarize",)}
    remember(arrange, WorkerInfo("w", "w", "host", 1, (QUEUE, "reports"), handlers, 10, 0, NOW))

    [(level, what)] = about_queue(ropeway)

    assert (level, "'summarize'" in what) == ("problem", True)


def test_paused_queues_names_and_workers_are_warnings(ropeway: Ropeway, arrange: Arrange):
    arrange.job()
    serve(arrange, paused=True)
    arrange.on_queue(lambda queue: queue.pause())
    arrange.on_queue(lambda queue: queue.pause("send"))

    assert [level for level, _ in about_queue(ropeway)] == ["warning"] * 3
    assert ropeway("doctor").code == ExitCode.OK


def test_overdue_and_stalled_jobs_are_problems(ropeway: Ropeway, arrange: Arrange):
    async def long_ago(store: Store) -> None:
        then = await store.clock() - 10 * MINUTE
        await job_in("active", store, now=then)
        await job_in("delayed", store, now=then, delay=MINUTE)

    arrange.on_store(long_ago)
    serve(arrange)

    [overdue, stalled] = about_queue(ropeway)

    assert overdue == ("problem", "delayed jobs are overdue, by up to 9m")
    assert stalled[0] == "problem"
    assert stalled[1].startswith("1 job lost by a worker that died")


def test_a_limit_that_is_used_up_is_a_warning(ropeway: Ropeway, arrange: Arrange):
    arrange.job("active")
    arrange.job()
    serve(arrange)
    arrange.on_queue(lambda queue: queue.set_global_concurrency(1))

    assert [level for level, _ in about_queue(ropeway)] == ["warning"]


@pytest.mark.parametrize(("ahead", "level"), [(0, "ok"), (4_000, "ok"), (60_000, "warning"), (-60_000, "warning")])
def test_a_clock_that_disagrees_is_a_warning(ahead: int, level: str):
    assert examine_clock(NOW + ahead, NOW).level == level


class TestSchedules:
    def test_one_that_is_late_is_a_problem(self, ropeway: Ropeway, arrange: Arrange):
        write_schedule(arrange, -5 * MINUTE)
        serve(arrange)

        assert about_queue(ropeway) == [("problem", "schedule nightly is late, by 5m")]

    def test_one_that_is_due_is_well(self, ropeway: Ropeway, arrange: Arrange):
        write_schedule(arrange, MINUTE)
        serve(arrange)

        assert about_queue(ropeway) == [("ok", "1 worker, 0 waiting, 0 active")]

    def test_one_that_cannot_be_read_is_a_problem(self, ropeway: Ropeway, arrange: Arrange):
        write_schedule(arrange, MINUTE, "{}")

        [(level, what)] = about_queue(ropeway)

        assert level == "problem"
        assert what.startswith("schedule nightly cannot be read, and makes no jobs: ")

    def test_one_in_an_unknown_zone_is_a_problem(self, ropeway: Ropeway, arrange: Arrange):
        state = ScheduleState(Rule("@daily", "Mars/Olympus"), Template("report"))
        write_schedule(arrange, MINUTE, msgspec.json.encode(state).decode())

        [(level, what)] = about_queue(ropeway)

        assert level == "problem"
        assert "Mars/Olympus" in what

    def test_one_whose_jobs_no_worker_handles_is_a_problem(self, ropeway: Ropeway, arrange: Arrange):
        write_schedule(arrange, MINUTE)
        serve(arrange, "send")

        [(level, what)] = about_queue(ropeway)

        assert level == "problem"
        assert "jobs named 'report'" in what

    def test_one_without_a_worker_is_a_warning(self, ropeway: Ropeway, arrange: Arrange):
        write_schedule(arrange, MINUTE)

        assert about_queue(ropeway) == [("warning", "1 schedule and no worker: nothing makes their jobs")]

    def test_of_many_only_a_few_are_named(self, ropeway: Ropeway, arrange: Arrange):
        for number in range(7):
            write_schedule(arrange, -5 * MINUTE, id=f"s{number}")

        findings = about_queue(ropeway)

        assert len(findings) == 6
        assert findings[-1] == ("problem", "2 more schedules: late")


def test_dead_letters_without_a_worker_are_a_warning(ropeway: Ropeway, arrange: Arrange):
    origin = Origin("emails", "a", "no address", 1, NOW)
    arrange.job(extras=Extras(origin=origin))

    assert about_queue(ropeway) == [("warning", "it has 1 dead letter")]


def write_schedule(arrange: Arrange, due_in: int, value: str | None = None, id: str = "nightly") -> None:
    state = ScheduleState(Rule(every=MINUTE), Template("report"))
    text = msgspec.json.encode(state).decode() if value is None else value

    async def write(store: Store) -> None:
        await store.write_schedules(QUEUE, [ScheduleWrite(id, text, await store.clock() + due_in)])

    arrange.on_store(write)
