"""`ropeway top` where there is no terminal, and where it cannot work."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE

from .terminal import clean_environment


def start(*arguments: str, stdout: int = subprocess.PIPE) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "ropeway", "top", *arguments],
        env=clean_environment(),
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(*arguments: str) -> tuple[int, str, str]:
    process = start(*arguments)
    output, errors = process.communicate(timeout=PATIENCE)
    return process.returncode, output, errors


def test_once_is_one_frame_without_escape_codes(url: str):
    code, output, errors = run("--url", url, "--once")

    assert (code, errors) == (0, "")
    assert "emails" in output
    assert "images" in output
    assert "\x1b" not in output


def test_once_in_lines(url: str):
    code, output, _ = run("--url", url, "--once", "--plain", "--queue", "emails")

    assert code == 0
    assert output.count("\n") == 1
    assert " emails waiting=3 active=0 added/s=" in output


def test_once_in_json(url: str):
    code, output, _ = run("--url", url, "--once", "--json")

    seen = json.loads(output)
    assert code == 0
    assert [(queue["name"], queue["counts"]["waiting"]) for queue in seen["queues"]] == [("emails", 3), ("images", 1)]
    assert seen["at"].endswith("Z")


def test_into_a_pipe_it_is_lines_until_a_signal(url: str):
    process = start("--url", url, "--interval", "0.2")
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(4)]
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=PATIENCE)

    assert [line.split()[1] for line in lines] == ["emails", "images"] * 2
    assert process.returncode == 143
    assert errors == ""


def test_json_is_a_line_at_every_interval(url: str):
    process = start("--url", url, "--interval", "0.2", "--json")
    assert process.stdout is not None
    first, second = (json.loads(process.stdout.readline()) for _ in range(2))
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE)

    assert first["at"] < second["at"]
    assert process.returncode == 130


def test_a_reader_who_leaves_ends_it(url: str):
    process = start("--url", url, "--interval", "0.2")
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline()
    process.stdout.close()

    assert process.wait(PATIENCE) == 141
    assert process.stderr.read() == ""
    process.stderr.close()


def test_a_frame_that_nobody_reads_ends_it_the_same_way(url: str):
    reader, writer = os.pipe()
    os.close(reader)
    process = start("--url", url, "--once", stdout=writer)
    os.close(writer)
    _, errors = process.communicate(timeout=PATIENCE)

    assert (process.returncode, errors) == (141, "")


def assert_one_line(errors: str, text: str) -> None:
    assert text in errors
    assert errors.startswith("Error: ")
    assert errors.count("\n") == 1


def test_a_store_that_is_not_there_yet_is_empty_and_not_made(tmp_path: Path):
    code, output, errors = run("--once", "--url", f"sqlite:///{tmp_path}/jobs.db")

    assert (code, errors) == (0, "")
    assert "no queues" in output
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_is_none_is_said(tmp_path: Path):
    (tmp_path / "notes.txt").write_text("milk, bread, butter\n" * 100)
    code, _, errors = run("--url", f"sqlite:///{tmp_path}/notes.txt")

    assert code == 4
    assert_one_line(errors, "notes.txt")


def test_a_store_of_another_process_cannot_be_seen():
    code, _, errors = run("--url", "memory://")

    assert code == 4
    assert_one_line(errors, "are not visible")


def test_an_unknown_queue_is_said(url: str):
    code, _, errors = run("--url", url, "--once", "--queue", "emial")

    assert code == 3
    assert_one_line(errors, "there is no queue 'emial'")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--url", "carrier-pigeon://loft"],
        ["--interval", "0"],
        ["--interval", "nan"],
        ["--interval", "often"],
        ["--queue", ""],
        ["--json", "--plain"],
        ["--speed", "9"],
    ],
)
def test_a_wrong_command_is_refused(arguments: list[str]):
    code, output, errors = run(*arguments)

    assert (code, output) == (2, "")
    assert "Error: " in errors
    assert "Traceback" not in errors
