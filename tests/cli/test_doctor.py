"""What is wrong with a store and its queues."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from ropeway.cli.doctor.examining import examine_clock
from ropeway.cli.exit_codes import ExitCode
from ropeway.client.workers import WORKER_RECORDS, WorkerInfo
from ropeway.store.contract import Store
from ropeway.store.values import Record
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
