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
from tests.patience import PATIENCE
from tests.stores.brokers import BrokerProcess
from tests.stores.databases import DatabaseProcess
from tests.stores.places import empty_folder
from tests.stores.servers import ServerProcess

from .harness import AppProcess, Fleet, Gate, show, until

Server: TypeAlias = ServerProcess | DatabaseProcess | BrokerProcess

SERVERS: Final[dict[str, Callable[[Path], Server]]] = {
    "redis": ServerProcess,
    "postgres": DatabaseProcess,
    "remote": BrokerProcess,
}
GRACE: Final = 1.0
LOCK: Final = 3_600
"""Seconds after which a worker could forget its jobs: no end shall wait for that."""


def signal_all(server: Server, number: signal.Signals) -> None:
    """Also the processes that it has started. It is stopped first, so that it starts no others."""
    os.kill(server.pid, number)
    for pid in Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split():
        os.kill(int(pid), number)


def stop(server: Server) -> None:
    signal_all(server, signal.SIGSTOP)
    os.waitid(os.P_PID, server.pid, os.WSTOPPED | os.WNOWAIT)


AWAY: Final[dict[str, Callable[[Server], None]]] = {"killed": lambda server: server.kill(), "stopped": stop}


@pytest.fixture(params=["redis", "postgres", pytest.param("remote", marks=pytest.mark.deep)])
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
        signal_all(server, signal.SIGCONT)


@pytest.fixture
def url(server: Server) -> str:
    return server.url()


async def end(worker: AppProcess) -> int:
    """SIGTERM; answers the exit code. It takes about 6 seconds, and one to close the store's handle."""
    asked = worker.terminate()
    code = await worker.exit()
    show("from SIGTERM to the end of the worker", time.monotonic() - asked, "s")
    return code


@pytest.mark.parametrize("leave", ["killed", pytest.param("stopped", marks=pytest.mark.deep)], indirect=True)
async def test_a_worker_that_just_starts_ends_in_time(fleet: Fleet, leave: Callable[[], None]):
    worker = await fleet.start(grace=GRACE, lock_duration=LOCK).ready()
    leave()
    assert await end(worker) == 0


@pytest.mark.parametrize("leave", ["stopped", pytest.param("killed", marks=pytest.mark.deep)], indirect=True)
async def test_an_idle_worker_ends_in_time(queue: Queue, fleet: Fleet, leave: Callable[[], None]):
    job = await queue.add("touch")
    worker = fleet.start(grace=GRACE, lock_duration=LOCK)
    await job.result(timeout=PATIENCE)
    leave()
    assert await end(worker) == 0


@pytest.mark.parametrize(
    ("server", "leave"),
    [
        ("redis", "stopped"),
        ("postgres", "killed"),
        pytest.param("redis", "killed", marks=pytest.mark.deep),
        pytest.param("postgres", "stopped", marks=pytest.mark.deep),
        pytest.param("remote", "killed", marks=pytest.mark.deep),
        pytest.param("remote", "stopped", marks=pytest.mark.deep),
    ],
    indirect=True,
)
async def test_a_worker_whose_outcomes_cannot_be_settled_says_so_and_ends_in_time(
    queue: Queue, fleet: Fleet, gate: Gate, leave: Callable[[], None]
):
    jobs = await queue.add_many([("hold", str(gate)), ("hold-in-thread", str(gate)), ("listen-in-thread", None)])
    worker = fleet.start(grace=GRACE, lock_duration=LOCK)
    for job in jobs:
        await fleet.running_in(job.id)
    leave()
    gate.open()
    await until(lambda: len(worker.wrote("end")) == 2, "the end of two handlers")
    await end(worker)
    assert "3 outcomes could not be settled" in worker.said
