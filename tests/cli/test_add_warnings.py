"""What `ropeway add` says of jobs that no worker takes, and of options that it cannot know."""

from __future__ import annotations

import json

import msgspec
import pytest

from ropeway.cli.exit_codes import ExitCode
from ropeway.client.workers import WORKER_RECORDS, WorkerInfo
from ropeway.store.values import Record
from ropeway.testing.factories import MINUTE, NOW, QUEUE

from .conftest import Arrange, Ropeway

OPTIONS: dict[str, tuple[str, ...]] = {"send_email": ("attempts", "timeout")}


@pytest.fixture
def worker(arrange: Arrange) -> None:
    """One that runs two tasks of the queue."""
    remember(arrange, ("send_email", "print"))


def remember(arrange: Arrange, handlers: tuple[str, ...] | None) -> None:
    info = WorkerInfo("w", "w", "host", 1, (QUEUE,), {QUEUE: handlers}, 10, 0, NOW, task_options={QUEUE: OPTIONS})
    remember_info(arrange, info)


def remember_info(arrange: Arrange, info: WorkerInfo) -> None:
    record = Record(WORKER_RECORDS, info.id, msgspec.json.encode(info).decode())
    arrange.on_store(lambda store: store.remember(record, lasting=MINUTE))


@pytest.mark.usefixtures("worker")
def test_a_name_that_no_worker_handles_is_told_with_the_nearest(ropeway: Ropeway):
    ran = ropeway("add", QUEUE, "send-email")

    assert ran.code == ExitCode.OK
    assert len(ran.out.split()) == 1
    assert ran.err == f"Warning: no worker runs 'send-email' in queue {QUEUE!r}; did you mean 'send_email'?\n"


@pytest.mark.usefixtures("worker")
def test_without_a_near_one_all_are_told(ropeway: Ropeway):
    assert "'letters'; there is print, send_email" in ropeway("add", QUEUE, "resize").err


def test_a_name_that_another_queue_of_the_same_worker_has_is_told_with_that_queue(ropeway: Ropeway, arrange: Arrange):
    handlers: dict[str, tuple[str, ...] | None] = {QUEUE: ("summarise",), "reports": ("summarize",)}
    info = WorkerInfo("w", "w", "host", 1, (QUEUE, "reports"), handlers, 10, 0, NOW)
    remember_info(arrange, info)

    ran = ropeway("add", QUEUE, "summarize")

    assert ran.err == f"Warning: no worker runs 'summarize' in queue {QUEUE!r}; queue 'reports' has it\n"
    assert ropeway("add", "reports", "summarize").err == ""


@pytest.mark.usefixtures("worker")
def test_a_name_that_is_handled_without_options_is_added_silently(ropeway: Ropeway):
    assert ropeway("add", QUEUE, "print").err == ""


def test_a_worker_for_every_name_handles_it(ropeway: Ropeway, arrange: Arrange):
    remember(arrange, None)

    assert ropeway("add", QUEUE, "resize").err == ""


@pytest.mark.usefixtures("worker")
def test_options_that_only_the_app_knows_are_told(ropeway: Ropeway):
    ran = ropeway("add", QUEUE, "send_email", "--attempts", "2", "--json")

    assert ran.json["created"]
    assert ran.err.startswith("Warning: the own options of task 'send_email' (timeout) were not used")
    assert ropeway("add", QUEUE, "send_email", "--attempts", "2", "--timeout", "5").err == ""


@pytest.mark.usefixtures("worker")
def test_a_queue_without_a_worker_is_told_with_its_store_and_the_nearest(ropeway: Ropeway, url: str):
    ran = ropeway("add", f"{QUEUE}x", "send_email")

    assert ran.err == f"Warning: no worker runs on queue '{QUEUE}x' of {url} now; did you mean {QUEUE!r}?\n"


@pytest.mark.usefixtures("worker")
def test_a_bulk_tells_each_name_once(ropeway: Ropeway):
    names = ["print", "send-email", "send-email", "resize"]

    ran = ropeway("add", QUEUE, "--bulk", "-", given="\n".join(json.dumps({"name": name}) for name in names))

    assert ran.out == "4 jobs added\n"
    assert ran.err.count("Warning") == 2
    assert ropeway("add", QUEUE, "--bulk", "-", given="").err == ""


@pytest.mark.usefixtures("worker")
def test_it_is_told_before_the_wait(ropeway: Ropeway):
    ran = ropeway("add", QUEUE, "send-email", "--wait", "0.01")

    assert ran.code == ExitCode.TIMEOUT
    assert "did you mean 'send_email'?" in ran.err
