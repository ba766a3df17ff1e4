"""Every Python block of the README, the pages and llms.txt is run, in the order of its page.

Blocks share their names with those before them on their page, take nothing else for granted, and may await. What a
block prints must contain what its comments promise by `# -> ...`, in that order.
"""

from __future__ import annotations

import re
import sys
from fnmatch import fnmatchcase
from pathlib import Path
from types import ModuleType

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from ropeway import Queue
from tests.stores.databases import new_database

from .pages import DJANGO, PAGES, Block, blocks_of
from .running import run

PROMISE = re.compile(r"# -> (.*)$", re.MULTILINE)
WITH_PYTHON = [page for page in PAGES if page != DJANGO and blocks_of(page, "python")]


@pytest.mark.parametrize("page", WITH_PYTHON, ids=lambda page: page.stem)
async def test_every_block_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    if any("DATABASE_URL" in block.text for block in blocks_of(page, "python")):
        monkeypatch.setenv("DATABASE_URL", new_database())
    # A module, because dataclasses and the like look for the one that they stand in.
    module = ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)
    names = vars(module)
    try:
        for block in blocks_of(page, "python"):
            assert_printed(block, await run(block, names, tmp_path))
    finally:
        for own in names.values():
            if isinstance(own, Queue):
                await own.close()
            elif isinstance(own, AsyncEngine):
                await own.dispose()


def assert_printed(block: Block, printed: str) -> None:
    lines = iter(printed.splitlines())
    for promise in PROMISE.findall(block.text):
        pattern = "".join(f"[{sign}]" if sign in "*?[" else sign for sign in promise).replace("...", "*")
        kept = any(fnmatchcase(line, pattern) for line in lines)
        assert kept, f"{block} promised {promise!r}, and printed\n{printed}"
