"""SIGTERM while the server is away: what cannot be told to it does not keep a worker from its end."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeAlias, cast

import pytest

from ropeway import Queue
from tests.stores.databases import DatabaseProcess
from tests.stores.places import empty_folder
from tests.stores.servers import ServerProcess

from .harness import AppProcess, Fleet, Gate, show, until

Server: TypeAlias = ServerProcess | DatabaseProcess

SERVERS: Final[dict[str, Callable[[Path], Server]]] = {"redis": ServerProcess, "postgres": DatabaseProcess}
GRACE: Final = 1.0
LIMIT: Final = 20.0
"""Seconds for a whole program, on a busy machine: about 6 for the worker, and one to close the store's handle.
Less than a lock lasts.
"""


def pids_of(server: Server) -> list[int]:
    """With the processes that it has started."""
    children = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text()
    return [server.pid, *map(int, children.split())]


def stop(server: Server) -> None:
    for pid in pids_of(server):
        os.kill(pid, signal.SIGSTOP)


def go_on(server: Server) -> None:
    for pid in pids_of(server):
        os.kill(pid, signal.SIGCONT)


AWAY: Final[dict[str, Callable[[Server], None]]] = {"killed": lambda server: server.kill(), "stopped": stop}


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with empty_folder() as folder:
        folder.chmod(0o755)
        server = SERVERS[cast(str, request.param)](folder)
        server.start()
        yield server
        server.kill()


@pytest.fixture(params=AWAY)
def leave(request: pytest.FixtureRequest, server: Server) -> Iterator[Callable[[], None]]:
    yield lambda: AWAY[cast(str, request.param)](server)
    if request.param == "stopped":
        go_on(server)


@pytest.fixture
def url(server: Server) -> str:
    return server.url()


async def end(worker: AppProcess) -> float:
    """SIGTERM; answers how long its end took, that of its process too."""
    asked = worker.terminate()
    await worker.exit()
    took = time.monotonic() - asked
    show("from SIGTERM to the end of the worker", took, "s")
    return took


@pytest.mark.parametrize("leave", ["killed", pytest.param("stopped", marks=pytest.mark.deep)], indirect=True)
async def test_a_worker_that_just_starts_ends_in_time(fleet: Fleet, leave: Callable[[], None]):
    worker = await fleet.start(grace=GRACE).ready()
    leave()
    assert await end(worker) < LIMIT
    assert worker.exit_code == 0


@pytest.mark.parametrize("leave", ["stopped", pytest.param("killed", marks=pytest.mark.deep)], indirect=True)
async def test_an_idle_worker_ends_in_time(queue: Queue, fleet: Fleet, leave: Callable[[], None]):
    job = await queue.add("touch")
    worker = fleet.start(grace=GRACE)
    await job.result(timeout=30)
    leave()
    assert await end(worker) < LIMIT
    assert worker.exit_code == 0


@pytest.mark.parametrize(
    ("server", "leave"),
    [
        ("redis", "stopped"),
        ("postgres", "killed"),
        pytest.param("redis", "killed", marks=pytest.mark.deep),
        pytest.param("postgres", "stopped", marks=pytest.mark.deep),
    ],
    indirect=True,
)
async def test_a_worker_whose_outcomes_cannot_be_settled_says_so_and_ends_in_time(
    queue: Queue, fleet: Fleet, gate: Gate, leave: Callable[[], None]
):
    jobs = await queue.add_many([("hold", str(gate)), ("hold-in-thread", str(gate)), ("listen-in-thread", None)])
    worker = fleet.start(grace=GRACE)
    for job in jobs:
        await fleet.running_in(job.id)
    leave()
    gate.open()
    await until(lambda: len(worker.wrote("end")) == 2, "the end of two handlers")
    assert await end(worker) < LIMIT
    assert "3 outcomes could not be settled" in worker.said
