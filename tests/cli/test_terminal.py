"""What people see and type, in terminals of their own; and pipes that close."""

from __future__ import annotations

import re
import subprocess

import pytest

from ropeway.cli.exit_codes import ExitCode
from ropeway.cli.ids import short_id
from ropeway.job.ids import new_id
from ropeway.testing.factories import QUEUE

from .conftest import Arrange
from .processes import COMMAND, Programs

COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.parametrize(("answer", "code", "after"), [("y", 0, None), ("n", 1, "waiting"), ("", 1, "waiting")])
def test_a_person_is_asked_before_jobs_are_removed(
    programs: Programs, arrange: Arrange, answer: str, code: int, after: str | None
):
    job = arrange.job()

    terminal = programs.start_in_terminal("jobs", "remove", "--state", "waiting")
    terminal.shows(f"Remove 1 waiting job of {QUEUE}? [y/N]:")
    terminal.types(f"{answer}\n")

    assert terminal.exit_code() == code
    assert arrange.state_of(job.id) == after


def test_ctrl_c_at_the_question_does_nothing(programs: Programs, arrange: Arrange):
    job = arrange.job()

    terminal = programs.start_in_terminal("queues", "drain", QUEUE)
    terminal.shows("[y/N]: ")
    terminal.rests()
    terminal.types("\x03")

    assert terminal.exit_code() == ExitCode.INTERRUPTED
    assert "Traceback" not in terminal.text
    assert arrange.state_of(job.id) == "waiting"


def test_ctrl_c_ends_the_wait_for_data_to_be_typed(programs: Programs, arrange: Arrange):
    terminal = programs.start_in_terminal("add", QUEUE, "send", "-")
    terminal.shows("end it with Ctrl-D")
    terminal.rests()
    terminal.types("\x03")

    assert terminal.exit_code() == ExitCode.INTERRUPTED
    assert arrange.on_store(lambda store: store.queues()) == []


@pytest.mark.parametrize(("environment", "is_coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_a_terminal_gets_colours_unless_it_wants_none(
    programs: Programs, arrange: Arrange, environment: dict[str, str], is_coloured: bool
):
    arrange.job("failed")

    terminal = programs.start_in_terminal("jobs", "list", environment=environment)

    assert terminal.exit_code() == ExitCode.OK
    assert ("\x1b[31mfailed" in terminal.text, "\x1b" in terminal.text) == (is_coloured, is_coloured)


def test_a_list_of_queues_tells_which_store_it_is(programs: Programs, arrange: Arrange, url: str):
    arrange.job()
    terminal = programs.start_in_terminal("queues", "list", "--url", "sqlite:///ropeway.db", columns=200)

    assert terminal.exit_code() == ExitCode.OK
    assert url in terminal.text


@pytest.mark.parametrize("columns", [40, 80, 160])
def test_a_table_fits_its_terminal_and_keeps_ids_whole(programs: Programs, arrange: Arrange, columns: int):
    job = arrange.job(id="an-id-that-is-as-long-as-most-ids-are-", name="a-name-" * 20)

    terminal = programs.start_in_terminal("jobs", "list", columns=columns)

    assert terminal.exit_code() == ExitCode.OK
    lines = COLOUR.sub("", terminal.text).splitlines()
    assert max(map(len, lines)) <= columns
    assert any(line.startswith(job.id) for line in lines)
    assert "waiting" in terminal.text


@pytest.mark.parametrize("columns", [40, pytest.param(80, marks=pytest.mark.deep), 100, 160])
def test_a_list_has_the_whole_reason_of_an_end(programs: Programs, arrange: Arrange, columns: int):
    reason = "the mail server refused the connection: 550 5.1.1 recipient address rejected, user unknown in table"
    job = arrange.job(id=new_id())
    arrange.on_queue(lambda queue: queue.cancel(job.id, reason))

    terminal = programs.start_in_terminal("jobs", "list", columns=columns)

    assert terminal.exit_code() == ExitCode.OK
    text = COLOUR.sub("", terminal.text)
    assert max(map(len, text.splitlines())) <= columns
    assert reason in " ".join(text.split())
    assert (job.id in text, short_id(job.id) in text) == (columns == 160, True)


def test_a_reader_that_goes_away_ends_the_command_quietly(programs: Programs, arrange: Arrange):
    arrange.on_queue(lambda queue: queue.add_many(["send"] * 3_000))

    command = subprocess.Popen(
        [*COMMAND, "events", QUEUE],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=programs.environment(),
        cwd=programs.folder,
    )
    assert command.stdout is not None
    assert command.stderr is not None
    command.stdout.readline()
    command.stdout.close()

    assert command.stderr.read() == b""
    command.stderr.close()
    assert command.wait() == ExitCode.CLOSED_PIPE


def test_a_terminal_that_cannot_show_a_letter_is_shown_its_number(programs: Programs, arrange: Arrange):
    arrange.on_queue(lambda queue: queue.add("grüße → Köln", id="a"))

    ran = programs.start("jobs", "list", PYTHONIOENCODING="latin-1")

    assert ran.exit_code() == ExitCode.OK
    assert "grüße \\u2192 Köln".encode("latin-1") in ran.raw


def test_an_installation_without_the_extra_says_what_to_install(programs: Programs):
    without_click = "import sys; sys.modules['click'] = None; from ropeway.__main__ import main; main()"

    ran = subprocess.run(
        [COMMAND[0], "-c", without_click], capture_output=True, text=True, env=programs.environment(), check=False
    )

    assert ran.returncode == 1
    assert ran.stderr == 'The command line is not installed: pip install "ropeway[cli]"\n'


def test_help_waits_for_neither_stores_nor_tables(programs: Programs):
    ran = subprocess.run(
        [COMMAND[0], "-X", "importtime", *COMMAND[1:], "--help"],
        capture_output=True,
        text=True,
        env=programs.environment(),
        check=True,
    )

    imported = {line.rpartition("|")[2].strip() for line in ran.stderr.splitlines()}
    assert not {"rich", "apsw", "ropeway.stores.sqlite", "ropeway.cli.worker", "ropeway.cli.jobs"} & imported
