"""The ways in which a block of Python is run, each as its reader would do it."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import inspect
import io
import os
import re
import signal
import sys
from pathlib import Path
from types import CodeType
from typing import Any, Final

from ropeway import Queue

from .pages import ROOT, Block

NAMED: Final = re.compile(r"# ([a-z_/]+\.py)\n")


async def run(block: Block, names: dict[str, Any], folder: Path) -> str:
    """Answers what it printed. A block that begins with the name of a file is also saved as that file."""
    named = NAMED.match(block.text)
    if named:
        file = folder / named[1]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(block.text)
        if file.name.startswith("test_"):
            return await _run_as_tests(file)
        if '__name__ == "__main__"' in block.text:
            printed_by_app = await _run_beside_a_worker(file, folder)
            # The blocks after it use what it defines.
            await _run_in_place(block, names)
            return printed_by_app
    if "asyncio.run(" in block.text:
        return await _run_as_a_script(block, folder)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        await _run_in_place(block, names)
    return printed.getvalue()


async def _run_in_place(block: Block, names: dict[str, Any]) -> None:
    """With the names of the blocks before it: on the loop if it awaits, and otherwise in a thread without one."""
    # On its line in the page, so that a traceback shows the page.
    text = "\n" * (block.line - 1) + block.text
    code: CodeType = compile(text, block.page, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    if code.co_flags & inspect.CO_COROUTINE:
        await eval(code, names)  # noqa: S307 - the project's own documentation
    else:
        await asyncio.to_thread(exec, code, names)


async def _run_as_a_script(block: Block, folder: Path) -> str:
    """A worker is ended by SIGTERM, as soon as it has finished what the script before it added."""
    script = folder / "script.py"
    script.write_text(block.text)
    process = await _start(script, folder)
    if "Worker(" in block.text:
        async with Queue("emails") as queue:
            async for event in queue.events(after="start"):
                if event.name == "completed":
                    break
        process.send_signal(signal.SIGTERM)
    return await _output(process, str(block))


async def _run_beside_a_worker(file: Path, folder: Path) -> str:
    """As a page says it: an app and, in another terminal, a worker that runs its queue."""
    worker = await _start("-m", folder, "ropeway", "worker", f"{file.stem}:queue")
    printed = await _output(await _start(file, folder), file.name)
    worker.send_signal(signal.SIGTERM)
    await _output(worker, "its worker")
    return printed


async def _run_as_tests(file: Path) -> str:
    (file.parent / "pytest.ini").write_text("[pytest]\nasyncio_mode = auto\nfilterwarnings = error\n")
    plugins = ["-p", "ropeway.testing.plugin", "-p", "pytest_asyncio.plugin", "-p", "no:cacheprovider"]
    process = await _start("-m", file.parent, "pytest", "-q", *plugins, file.name, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    return await _output(process, file.name)


async def _start(program: str | Path, folder: Path, *arguments: str, **environment: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        program,
        *arguments,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        stdout=asyncio.subprocess.PIPE,
    )


async def _output(process: asyncio.subprocess.Process, what: str) -> str:
    printed, _ = await process.communicate()
    assert process.returncode == 0, f"{what} failed:\n{printed.decode()}"
    return printed.decode()
