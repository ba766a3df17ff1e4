"""Commands whose standard streams the caller closed, as daemons and cron jobs do."""

from __future__ import annotations

import subprocess

import pytest

from ropeway.cli.exit_codes import ExitCode
from ropeway.testing.factories import QUEUE
from tests.patience import PATIENCE

from .conftest import Arrange
from .processes import COMMAND, Programs


def run(programs: Programs, *arguments: str, closed: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-c", f'exec "$@" {closed}', "sh", *COMMAND, *arguments],
        capture_output=True,
        text=True,
        cwd=programs.folder,
        env=programs.environment(),
        timeout=PATIENCE,
        check=False,
    )


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["queues", "list"], ["queues", "list", "--json"], ["top", "--once"], ["top", "--once", "--plain"]],
    ids=" ".join,
)
@pytest.mark.parametrize("closed", [">&-", "<&- >&- 2>&-"])
def test_output_that_nobody_wants_is_written_nowhere(
    programs: Programs, arrange: Arrange, arguments: list[str], closed: str
):
    arrange.job()

    ran = run(programs, *arguments, closed=closed)

    assert (ran.returncode, ran.stdout, ran.stderr) == (ExitCode.OK, "", "")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [(["queues", "drain", QUEUE], "There is no terminal to ask on"), (["add", QUEUE, "send", "-"], "is not JSON")],
    ids=["drain", "add"],
)
def test_input_that_was_closed_is_empty(programs: Programs, arrange: Arrange, arguments: list[str], told: str):
    job = arrange.job()

    ran = run(programs, *arguments, closed="<&-")

    assert ran.returncode == ExitCode.USAGE
    assert told in ran.stderr
    assert arrange.state_of(job.id) == "waiting"


def test_an_error_that_nobody_reads_is_still_an_exit_code(programs: Programs):
    assert run(programs, "queues", "drain", "nobody", closed="2>&-").returncode == ExitCode.NOT_FOUND
