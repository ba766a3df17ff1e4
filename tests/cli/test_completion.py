"""What the tab key offers."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from ropeway.cli.exit_codes import ExitCode
from ropeway.cli.main import cli
from ropeway.client.workers import WORKER_RECORDS, WorkerInfo
from ropeway.store.values import Record
from ropeway.testing.factories import MINUTE, NOW, QUEUE

from .conftest import Arrange, Ropeway


def offered(*words: str) -> list[str]:
    """What bash would offer for the last word."""
    environment = {
        "_ROPEWAY_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(["ropeway", *words]),
        "COMP_CWORD": str(len(words)),
    }
    output = CliRunner().invoke(cli, [], env=environment).stdout
    return [line.partition(",")[2] for line in output.splitlines() if line]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_gets_its_script(ropeway: Ropeway, shell: str):
    ran = ropeway("completion", shell)

    assert ran.code == 0
    assert f"_ROPEWAY_COMPLETE={shell}_complete" in ran.out


def test_commands_and_states_are_completed(url: str):
    assert offered("jo") == ["jobs"]
    assert offered("jobs", "re") == ["redrive", "remove", "retry"]
    assert offered("jobs", "list", "--state", "waiting-") == ["waiting-children"]


def test_queues_are_completed_from_the_store(arrange: Arrange):
    arrange.job()
    arrange.job(queue="other")

    assert offered("queues", "pause", "") == [QUEUE, "other"]
    assert offered("jobs", "list", "--queue", "o") == ["other"]
    assert offered("top", "--queue", "o") == ["other"]


def test_job_names_are_completed_from_the_workers(arrange: Arrange):
    info = WorkerInfo("w", "w", "host", 1, (QUEUE,), {QUEUE: ("send", "print")}, 10, 0, NOW)
    record = Record(WORKER_RECORDS, info.id, msgspec.json.encode(info).decode())
    arrange.on_store(lambda store: store.remember(record, lasting=MINUTE))

    assert offered("queues", "pause", QUEUE, "--name", "") == ["print", "send"]


def test_a_store_that_cannot_be_asked_offers_nothing_and_is_not_made(url: str, tmp_path: Path):
    assert offered("queues", "pause", "") == []
    assert list(tmp_path.iterdir()) == []


def test_a_shell_that_is_not_said_is_asked_for_in_one_line(ropeway: Ropeway):
    ran = ropeway("completion")

    assert ran.code == ExitCode.USAGE
    assert "Choose from: bash, zsh, fish (see" in ran.err
