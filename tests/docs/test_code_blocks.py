"""Every Python block of the README and the docs is run, in the order of its page."""

from __future__ import annotations

import ast
import asyncio
import re
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from ropeway import Queue, Worker

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks_of(page: Path) -> list[str]:
    return BLOCK.findall(page.read_text())


@pytest.mark.parametrize("page", [page for page in PAGES if blocks_of(page)], ids=lambda page: page.stem)
async def test_every_block_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in blocks_of(page):
        if "asyncio.run(" in block:
            await run_as_a_script(block, tmp_path)
            continue
        async with Queue("emails") as queue:
            names |= {"queue": queue, "Worker": Worker, "send_email": answer}
            await run_in_place(block, names)


async def run_in_place(block: str, names: dict[str, Any]) -> None:
    code = compile(block, "<block>", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    running = eval(code, names)  # noqa: S307 - the project's own documentation
    if running is not None:
        await running


async def run_as_a_script(block: str, folder: Path) -> None:
    """A worker is ended by SIGTERM, as soon as it has finished what the script before it added."""
    script = folder / "script.py"
    script.write_text(block)
    process = await asyncio.create_subprocess_exec(sys.executable, script, cwd=folder)
    if "Worker(" in block:
        async with Queue("emails") as queue:
            async for event in queue.events(after="start"):
                if event.name == "completed":
                    break
        process.send_signal(signal.SIGTERM)
    assert await process.wait() == 0


async def answer(job: Any) -> dict[str, str]:
    return {"sent": job.data["to"]}
