"""Workers whose log nobody reads: they run their jobs and end all the same."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from ropeway.cli.exit_codes import ExitCode
from tests.patience import PATIENCE

from .conftest import Arrange
from .processes import COMMAND, Programs, until
from .unread import unread

JOBS = 1_200
"""More than lines may wait in the process, and a pipe is full long before."""
APP = """
import logging
from ropeway import Queue, Worker

letters = Queue("letters")
log = logging.getLogger("app")

@letters.task(attempts=1)
async def fail(text: str = "no luck " * 100):
    log.info("about to fail")
    raise ValueError(text)
"""
OWN_PROGRAM = """
import asyncio, logging
from app import letters
from ropeway import Worker

logging.basicConfig(level="WARNING")
asyncio.run(Worker(letters).run())
"""


@pytest.fixture(autouse=True)
def app(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP)


def add_jobs(arrange: Arrange) -> None:
    arrange.on_queue(lambda queue: queue.add_many([("fail", {})] * JOBS))


def all_have_failed(arrange: Arrange) -> bool:
    counts = arrange.on_queue(lambda queue: queue.counts())
    return bool(counts["failed"] == JOBS)


@pytest.mark.parametrize("options", [[], ["--processes", "2"], ["--json"]], ids=["one", "two processes", "json"])
def test_jobs_run_and_the_worker_ends_while_nobody_reads(programs: Programs, arrange: Arrange, options: list[str]):
    add_jobs(arrange)

    with unread([*COMMAND, "worker", "app:letters", *options], programs) as worker:
        until(lambda: all_have_failed(arrange), "the end of all jobs")
        worker.process.send_signal(signal.SIGTERM)

        assert worker.process.wait(PATIENCE) == ExitCode.OK


def test_who_reads_again_is_told_how_many_lines_were_dropped(programs: Programs, arrange: Arrange):
    add_jobs(arrange)

    with unread([*COMMAND, "worker", "app:letters"], programs) as worker:
        until(lambda: all_have_failed(arrange), "the end of all jobs")
        worker.read()
        worker.says("log lines were dropped")
        worker.process.send_signal(signal.SIGTERM)

        assert worker.process.wait(PATIENCE) == ExitCode.OK
        worker.says("has stopped")


def test_a_reader_that_went_away_changes_nothing(programs: Programs, arrange: Arrange):
    add_jobs(arrange)

    with unread([*COMMAND, "worker", "app:letters"], programs) as worker:
        worker.close()
        until(lambda: all_have_failed(arrange), "the end of all jobs")
        worker.process.send_signal(signal.SIGTERM)

        assert worker.process.wait(PATIENCE) == ExitCode.OK


def test_a_program_of_ones_own_runs_and_settles_its_jobs_while_nobody_reads(
    programs: Programs, arrange: Arrange, tmp_path: Path
):
    (tmp_path / "own.py").write_text(OWN_PROGRAM)
    add_jobs(arrange)

    with unread([sys.executable, "own.py"], programs) as worker:
        until(lambda: all_have_failed(arrange), "the end of all jobs")
        worker.process.send_signal(signal.SIGTERM)
        until(lambda: not arrange.on_queue(lambda queue: queue.workers()), "the worker's leave")
        # The end of Python waits for the handlers of the log.
        worker.read()

        assert worker.process.wait(PATIENCE) == 0


def test_the_log_of_a_program_of_ones_own_tells_how_many_lines_were_dropped(
    programs: Programs, arrange: Arrange, tmp_path: Path
):
    (tmp_path / "own.py").write_text(OWN_PROGRAM)
    add_jobs(arrange)

    with unread([sys.executable, "own.py"], programs) as worker:
        until(lambda: all_have_failed(arrange), "the end of all jobs")
        worker.read()
        worker.says("log lines were dropped")
        worker.process.send_signal(signal.SIGTERM)

        assert worker.process.wait(PATIENCE) == 0
