"""The fixtures, in pytest runs of their own: as users have them, with each way to run coroutines, and with none."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Final, TypeAlias

import pytest

ROOT: Final = Path(__file__).parents[2]
PLUGIN: Final = "ropeway.testing.plugin"
RunPytest: TypeAlias = Callable[..., str]


@pytest.fixture
def run_pytest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunPytest:
    """Runs tests in a process of their own, with no other plugins than the named ones, and answers what it said."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))

    def run(code: str, *plugins: str, ini: str = "", status: int = 0) -> str:
        (tmp_path / "test_it.py").write_text(code)
        (tmp_path / "pytest.ini").write_text(f"[pytest]\nfilterwarnings = error\n{ini}")
        loaded = [part for plugin in (PLUGIN, *plugins) for part in ("-p", plugin)]
        ran = subprocess.run(
            [sys.executable, "-m", "pytest", *loaded, "-p", "no:cacheprovider", "-q"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == status, ran.stdout + ran.stderr
        return ran.stdout

    return run


ASYNC_TEST: Final = """
import asyncio, pytest
from ropeway.testing import assert_added, drain

async def deliver(job):
    await asyncio.sleep(60)
    return job.data

MARK
async def test_it(ropeway_queue, ropeway_clock):
    start = ropeway_clock.now()
    queue = ropeway_queue("letters", attempts=3)
    job = await queue.add("letter", "here", delay="1 day")
    assert_added(queue, "letter", delay="1 day", attempts=3)
    await ropeway_clock.advance("1 hour")
    await drain(queue, deliver)
    assert await job.result() == "here"
    assert (ropeway_clock.now() - start).total_seconds() == 86_400 + 60
"""


@pytest.mark.parametrize(
    ("plugin", "ini", "mark"),
    [
        ("pytest_asyncio.plugin", "asyncio_mode = auto", ""),
        ("pytest_asyncio.plugin", "asyncio_mode = strict", "@pytest.mark.asyncio"),
        ("anyio.pytest_plugin", "", "@pytest.mark.anyio"),
    ],
    ids=["pytest-asyncio, auto", "pytest-asyncio, strict", "anyio"],
)
def test_the_fixtures_work_with_each_way_to_run_coroutines(run_pytest: RunPytest, plugin: str, ini: str, mark: str):
    backend = "@pytest.fixture\ndef anyio_backend():\n    return 'asyncio'\n" if "anyio" in plugin else ""
    code = ASYNC_TEST.replace("MARK", f"{backend}{mark}")

    assert "1 passed" in run_pytest(code, plugin, ini=ini)


def test_the_fixtures_work_without_an_event_loop(run_pytest: RunPytest):
    code = """
import asyncio
from ropeway import Queue
from ropeway.testing import assert_added, drain_sync

queue = Queue("letters", "sqlite:////nowhere/at/all.db")

def view():
    asyncio.run(queue.add("letter", {"to": "Ann"}, delay="1 day"))

def test_first(ropeway_isolated, ropeway_clock):
    ropeway_isolated(queue)
    view()
    assert_added(queue, "letter", data={"to": "Ann"})
    ropeway_clock.advance_sync("1 day")
    assert len(drain_sync(queue, lambda job: job.data, until="due").completed) == 1

def test_second(ropeway_isolated, ropeway_store):
    assert ropeway_isolated(queue) is ropeway_store is queue.store
    assert ropeway_store.jobs_added == []

def test_third():
    assert queue.store.url.startswith("sqlite")
"""
    assert "3 passed" in run_pytest(code)


def test_a_failure_shows_the_handler(run_pytest: RunPytest):
    code = """
import asyncio
from ropeway.testing import drain_sync

def deliver(job):
    street = None
    assert street == "Main Street"

def test_it(ropeway_queue):
    queue = ropeway_queue()
    asyncio.run(queue.add("letter"))
    drain_sync(queue, deliver)
"""
    said = run_pytest(code, status=1)

    assert '    assert street == "Main Street"' in said
    assert "The job 'letter'" in said


def test_a_run_that_uses_no_fixture_pays_for_nothing(run_pytest: RunPytest):
    code = """
import sys

def test_it():
    engine = {"msgspec", "asyncio", "hypothesis", "ropeway.client", "ropeway.worker", "ropeway.errors"}
    assert not engine & set(sys.modules)
    assert "ropeway.testing.plugin" in sys.modules
"""
    assert "1 passed" in run_pytest(code)


def test_every_fixture_is_explained(run_pytest: RunPytest, tmp_path: Path):
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", PLUGIN, "--fixtures", "-q"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [line for line in ran.stdout.splitlines() if line.startswith("ropeway_")]

    assert len(lines) == 4
    assert "no docstring available" not in ran.stdout.partition("ropeway_clock")[2]


def test_it_is_installed_with_ropeway():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    entry = project["entry-points"]["pytest11"]["ropeway"]

    assert entry == PLUGIN
    assert hasattr(import_module(entry), "ropeway_clock")
