"""Every example runs to its end, as a user would start it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.live.terminal import Terminal

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(path.stem for path in (ROOT / "examples").glob("*.py") if path.stem not in ("__init__", "tour"))


def start(example: str, folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", f"examples.{example}", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_example_ends_well(example: str, tmp_path: Path):
    process = start(example, tmp_path)
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert output


def test_the_tour_ends_by_itself_with_a_summary(tmp_path: Path):
    process = start("tour", tmp_path, "--once")
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert "{'completed': 8, 'failed': 1, 'cancelled': 1}" in output
    assert (tmp_path / "ropeway.db").exists()


def test_the_tour_ends_at_ctrl_c(tmp_path: Path):
    process = start("tour", tmp_path)
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
        terminal.until_shown("send-email")
        terminal.press("q")

        assert terminal.exit_code() == 0
        assert "in emails now" in terminal.output
        assert terminal.current_manners() == terminal.manners
    finally:
        terminal.close()


def test_ctrl_c_ends_the_view_and_the_tour(tmp_path: Path):
    terminal = Terminal("-m", "examples.tour", "--url", f"sqlite:///{tmp_path}/ropeway.db", width=100, height=30)
    try:
        terminal.until_shown("send-email")
        terminal.press("\x03")

        assert terminal.exit_code() == 0
        assert "in emails now" in terminal.output
        assert "Traceback" not in terminal.output
    finally:
        terminal.close()
