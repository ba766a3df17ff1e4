"""Noticing that source files changed."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ropeway.cli.reloading import Sources
from tests.patience import PATIENCE


def edit(path: Path) -> None:
    path.write_text("x = 2  # longer than before")


def touch(path: Path) -> None:
    # By hand: a clock may be too coarse to tell two writes apart.
    os.utime(path, ns=(1, 1))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("app.py", "shop/jobs.py", "notes.txt", ".hidden/a.py", "__pycache__/b.py", "venv/c.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x = 1")
    return tmp_path


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (edit, "app.py"),
        (touch, "app.py"),
        (edit, "shop/jobs.py"),
        (Path.unlink, "shop/jobs.py"),
        (edit, "shop/new.py"),
    ],
)
async def test_a_change_is_noticed_and_named(folder: Path, change: Callable[[Path], None], name: str):
    sources = Sources([folder])

    change(folder / name)

    assert await asyncio.wait_for(sources.changed(), PATIENCE) == str(folder / name)


async def test_what_is_no_source_of_the_app_is_not_looked_at(folder: Path):
    sources = Sources([folder])
    for name in ("notes.txt", ".hidden/a.py", "__pycache__/b.py", "venv/c.py"):
        edit(folder / name)

    edit(folder / "app.py")

    assert await asyncio.wait_for(sources.changed(), PATIENCE) == str(folder / "app.py")


async def test_a_change_is_told_once(folder: Path):
    sources = Sources([folder])
    edit(folder / "app.py")
    await asyncio.wait_for(sources.changed(), PATIENCE)

    edit(folder / "shop/jobs.py")

    assert await asyncio.wait_for(sources.changed(), PATIENCE) == str(folder / "shop/jobs.py")


async def test_a_folder_that_goes_away_is_a_change(folder: Path):
    sources = Sources([folder / "shop"])

    (folder / "shop/jobs.py").unlink()
    (folder / "shop").rmdir()

    assert await asyncio.wait_for(sources.changed(), PATIENCE) == str(folder / "shop/jobs.py")
