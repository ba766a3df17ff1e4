"""`ropeway add --app`: jobs with the options of their task, and data that fits it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ropeway.cli.exit_codes import ExitCode
from ropeway.job.backoff import Backoff

from .conftest import Arrange, Ropeway

APP = """
from ropeway import Phase, Pipeline, Queue, Worker

emails = Queue("emails", priority=3)
other = Queue("other")
here_only = Queue("here", "memory://")

@emails.task(attempts=5, backoff=10, timeout=60)
async def send_email(to: str, subject: str = "Hello") -> None: ...

emails.task(Pipeline([Phase("write", print)]), name="letters", attempts=4)

queues = [emails, other]
worker = Worker(emails, {"print": print})
every_name = Worker(emails, print)
"""


@pytest.fixture(autouse=True)
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "mail_app.py").write_text(APP)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield
    sys.modules.pop("mail_app", None)


def added(arrange: Arrange, id: str) -> Any:
    [record] = arrange.on_store(lambda store: store.get("emails", [id]))
    return record


@pytest.mark.parametrize("target", ["mail_app:emails", "mail_app:queues", "mail_app:worker"])
def test_a_job_has_the_options_of_its_task(ropeway: Ropeway, arrange: Arrange, target: str):
    ran = ropeway("add", "emails", "send_email", '{"to": "a"}', "--app", target, "--timeout", "5")

    job = added(arrange, ran.out.strip())
    options = job.read_options()
    assert ran.code == ExitCode.OK
    assert (options.attempts, options.backoff, options.timeout) == (5, Backoff.fixed(10), 5_000)
    assert job.priority == 3
    assert "own options" not in ran.err


@pytest.mark.parametrize("target", ["mail_app:emails", "mail_app:worker"])
def test_a_pipeline_of_the_queue_is_known_as_its_tasks_are(ropeway: Ropeway, arrange: Arrange, target: str):
    ran = ropeway("add", "emails", "letters", "--app", target)

    assert ran.code == ExitCode.OK, ran.err
    assert added(arrange, ran.out.strip()).read_options().attempts == 4


def test_a_bulk_has_them_too(ropeway: Ropeway, arrange: Arrange):
    line = json.dumps({"name": "send_email", "data": {"to": "a"}, "options": {"id": "a"}})

    ropeway("add", "emails", "--bulk", "-", "--app", "mail_app:emails", given=line)

    assert added(arrange, "a").read_options().attempts == 5


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["emails", "send_email", '{"too": "a"}'], "it takes (to, subject='Hello')"),
        (["emails", "send_email"], "missing required field `to`"),
        (
            ["emails", "send-email", '{"to": "a"}'],
            "has no task 'send-email' in queue 'emails'; did you mean 'send_email'?",
        ),
        (["emials", "send_email"], "did you mean 'emails'?"),
    ],
)
def test_what_the_app_cannot_run_is_refused(ropeway: Ropeway, arrange: Arrange, arguments: list[str], hint: str):
    ran = ropeway("add", *arguments, "--app", "mail_app:queues")

    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert hint in ran.err
    assert arrange.on_store(lambda store: store.queues()) == []


@pytest.mark.parametrize(("name", "target"), [("print", "mail_app:worker"), ("any", "mail_app:every_name")])
def test_handlers_of_a_worker_count_as_tasks(ropeway: Ropeway, name: str, target: str):
    assert ropeway("add", "emails", name, "--app", target).code == ExitCode.OK


def test_the_queue_of_an_app_that_nobody_else_sees_is_refused(ropeway: Ropeway):
    ran = ropeway("add", "here", "send", "--app", "mail_app:here_only")

    assert ran.code == ExitCode.USAGE
    assert "one process" in ran.err


def test_the_app_may_be_in_another_folder(ropeway: Ropeway, tmp_path: Path):
    folder = tmp_path / "shop"
    folder.mkdir()
    (tmp_path / "mail_app.py").rename(folder / "mail_app.py")

    ran = ropeway("add", "emails", "send_email", '{"to": "a"}', "--app", "mail_app:emails", "--app-dir", "shop")

    assert ran.code == ExitCode.OK
