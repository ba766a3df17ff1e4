"""Examples as modules, each on a store in a folder of its own."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]

Load = Callable[[str], ModuleType]
Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    """Imports an example anew: its queues take the store that is named then."""
    monkeypatch.setenv("ROPEWAY_URL", f"sqlite:///{tmp_path}/ropeway.db")

    def load_example(name: str) -> ModuleType:
        monkeypatch.delitem(sys.modules, f"examples.{name}", raising=False)
        return importlib.import_module(f"examples.{name}")

    return load_example


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Starts an example as a user would; what still runs at the end of the test is killed."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    started: list[subprocess.Popen[str]] = []

    def start_example(name: str, *arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", f"examples.{name}", *arguments],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start_example
    for process in started:
        process.kill()
        process.communicate()
