"""`ropeway serve` and `ropeway tokens`, as programs."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.patience import PATIENCE

ROPEWAY = [sys.executable, "-m", "ropeway"]


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/ropeway.db"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*ROPEWAY, *arguments], capture_output=True, text=True, check=False, timeout=PATIENCE)


@contextlib.contextmanager
def server(command: str, url: str, **environment: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server that runs, and its address, which is the first thing that it says."""
    with subprocess.Popen(
        [*ROPEWAY, command, "--port", "0", "--url", url],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    ) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            found = re.search(r"http://127\.0\.0\.1:\d+", line)
            assert found, line
            yield process, found[0]
        finally:
            process.kill()


def ask_to_end(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, "Traceback" in errors) == (0, False)


def test_it_serves_until_it_is_asked_to_end(url: str):
    with server("serve", url) as (process, address):
        assert httpx.get(f"{address}/readyz").json()["status"] == "ok"
        assert "No jobs yet" in httpx.get(address).text
        ask_to_end(process)


def test_the_dashboard_opens_a_browser_and_ends_before_it(url: str, tmp_path: Path):
    opened = tmp_path / "opened"
    os.mkfifo(opened)
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$$ $1" > {opened}\nexec sleep 600 2>&-\n')
    browser.chmod(0o755)
    with server("dashboard", url, BROWSER=str(browser)) as (process, address):
        pid, shown = opened.read_text().split()
        try:
            assert shown == address
            ask_to_end(process)
        finally:
            os.kill(int(pid), signal.SIGKILL)


@pytest.mark.parametrize("options", [["--host", "0.0.0.0"], ["--host", "0.0.0.0", "--insecure-no-auth"]])  # noqa: S104
def test_other_machines_are_not_listened_to_without_tokens(url: str, options: list[str]):
    ran = run("serve", "--port", "0", "--url", url, *options)
    assert ran.returncode == 2
    assert "Traceback" not in ran.stderr


def test_a_token_is_made_listed_and_revoked(url: str):
    made = run("tokens", "create", "--role", "worker", "--queue", "mail-*", "--name", "mailer", "--url", url)
    token = made.stdout.strip()
    assert re.fullmatch(r"rw_[0-9a-f]{16}_[0-9a-f]{64}", token)
    [listed] = json.loads(run("tokens", "list", "--json", "--url", url).stdout)["tokens"]
    assert (listed["roles"], listed["queues"], listed["name"]) == (["worker"], ["mail-*"], "mailer")
    assert token.split("_")[2] not in json.dumps(listed)
    assert run("tokens", "revoke", listed["id"], "--url", url).returncode == 0
    assert run("tokens", "revoke", listed["id"], "--url", url).returncode == 3


def test_schemas_that_cannot_be_used_are_refused(url: str, tmp_path: Path):
    file = tmp_path / "schemas.json"
    file.write_text("{")
    unreadable = run("serve", "--url", url, "--schemas", str(file))
    file.write_text('{"send": {"type": "nonsense"}}')
    wrong = run("serve", "--url", url, "--schemas", str(file))
    assert (unreadable.returncode, wrong.returncode) == (2, 2)
    assert "cannot be read as JSON" in unreadable.stderr
    assert "of 'send' is no JSON Schema" in wrong.stderr
