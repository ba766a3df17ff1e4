"""Every example runs to its end, as a user would start it."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.live.terminal import Terminal

from .conftest import ROOT, Start

EXAMPLES = sorted(path.stem for path in (ROOT / "examples").glob("*.py") if path.stem not in ("__init__", "tour"))


# Those that leave a file behind, and may find it when they begin.
WITH_FILE = ["documents", "fastapi_app", "flask_app", "django_app", "script"]


@pytest.mark.parametrize("example", sorted({*EXAMPLES} - {*WITH_FILE, "big_import"}))
def test_the_example_ends_well(example: str, start: Start):
    _run(example, start)


@pytest.mark.parametrize("example", WITH_FILE)
def test_the_example_ends_well_and_can_be_run_again_on_its_file(example: str, start: Start):
    for _ in range(2):
        _run(example, start)


def _run(example: str, start: Start) -> None:
    process = start(example)
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert output


@pytest.mark.parametrize(
    ("example", "package", "remedy"),
    [
        ("fastapi_app", "fastapi", "pip install fastapi httpx"),
        ("fastapi_app", "httpx", "pip install fastapi httpx"),
        ("flask_app", "flask", "pip install flask"),
        ("django_app", "django", "pip install django"),
    ],
)
def test_an_example_without_its_package_says_what_to_install(example: str, package: str, remedy: str):
    without = f"import sys, runpy; sys.modules[{package!r}] = None; runpy.run_module('examples.{example}')"

    ran = subprocess.run([sys.executable, "-c", without], cwd=ROOT, capture_output=True, text=True, check=False)

    assert (ran.returncode, ran.stderr) == (1, f"{package} is not installed: {remedy}\n")
    assert remedy in (ROOT / "examples" / f"{example}.py").read_text().partition("from __future__")[0]
    assert remedy in (ROOT / "examples" / "README.md").read_text()


def test_the_import_goes_on_after_a_kill_where_it_was_and_can_be_run_again_on_its_file(start: Start):
    process = start("big_import")
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors

    first, second = re.findall(r"worker (\d+) (?:downloads|goes on)", output)
    assert f"worker {first} was killed" in output
    assert first != second
    assert output.count("downloads the file") == 1
    portions = re.findall(r"worker (\d+) adds up rows ([\d,]+) ", output)
    done = [rows for worker, rows in portions if worker == first]
    again = [rows for worker, rows in portions if worker == second]
    # Only the one that was being added up when the worker was killed is added up a second time.
    assert len(done) >= 5
    assert len(set(done) & set(again)) <= 1
    assert len({*done, *again}) == 10
    assert "{'rows': 200000, 'total': 19999900000}" in output
    assert output.splitlines()[-3:] == ["download: completed", "process: completed", "report: completed"]
    _run("big_import", start)


def test_the_list_of_examples_has_them_all():
    listed = (ROOT / "examples" / "README.md").read_text()

    assert [example for example in [*EXAMPLES, "tour"] if f"({example}.py)" not in listed] == []


def test_the_tour_ends_by_itself_with_a_summary(start: Start, tmp_path: Path):
    process = start("tour", "--once")
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert "{'completed': 8, 'failed': 1, 'cancelled': 1}" in output
    [told] = [line for line in output.splitlines() if " failed " in line]
    assert "reason='Unrecoverable: order 0" in told
    assert not errors
    assert (tmp_path / "ropeway.db").exists()


def test_the_tour_ends_at_ctrl_c(start: Start):
    process = start("tour")
    assert process.stdout is not None
    for line in process.stdout:
        if "completed" in line:
            break
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert "in emails now" in output


def test_in_a_terminal_the_tour_shows_the_live_view_until_it_is_quit(tmp_path: Path):
    terminal = Terminal("-m", "examples.tour", "--url", f"sqlite:///{tmp_path}/ropeway.db", width=100, height=30)
    try:
        terminal.until_shown("send_email")
        terminal.press("q")

        assert terminal.exit_code() == 0
        assert "in emails now" in terminal.output
        assert terminal.current_manners() == terminal.manners
    finally:
        terminal.close()


def test_ctrl_c_ends_the_view_and_the_tour(tmp_path: Path):
    terminal = Terminal("-m", "examples.tour", "--url", f"sqlite:///{tmp_path}/ropeway.db", width=100, height=30)
    try:
        terminal.until_shown("send_email")
        terminal.press("\x03")

        assert terminal.exit_code() == 0
        assert "in emails now" in terminal.output
        assert "Traceback" not in terminal.output
    finally:
        terminal.close()
