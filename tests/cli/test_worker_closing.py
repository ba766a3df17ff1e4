"""A worker whose store cannot be closed: its process ends all the same."""

from __future__ import annotations

import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ropeway.cli.exit_codes import ExitCode

from .processes import Programs

APP = """
from ropeway import Queue, Worker

def make() -> Worker:
    return Worker(Queue("letters"), {"send": print}, grace=1)
"""


@pytest.fixture(autouse=True)
def _app(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP)


def test_a_file_that_another_process_has_locked_does_not_hold_it_up(programs: Programs, url: str, tmp_path: Path):
    worker = programs.start("worker", "app:make")
    worker.says("> started")
    with closing(sqlite3.connect(tmp_path / "ropeway.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        worker.signal(signal.SIGTERM)
        assert worker.exit_code() == ExitCode.OK
        other.execute("ROLLBACK")
    assert f"{url} could not be closed within" in worker.err
