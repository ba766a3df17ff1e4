"""A server that is killed and comes back, under workers and a producer that know nothing of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeAlias, cast

import pytest

from ropeway import Queue
from ropeway.errors import StoreUnavailable
from ropeway.job.codec import decode
from tests.stores.brokers import BrokerProcess
from tests.stores.databases import DatabaseProcess
from tests.stores.places import empty_folder
from tests.stores.servers import ServerProcess

from .chronicle import all_jobs, check_counters
from .harness import Fleet, until

Server: TypeAlias = ServerProcess | DatabaseProcess | BrokerProcess

DEATHS: Final = 3
JOBS_BETWEEN: Final = 100


SERVERS: Final[dict[str, Callable[[Path], Server]]] = {
    "redis, always": lambda folder: ServerProcess(folder, "--appendonly", "yes", "--appendfsync", "always"),
    "redis, everysec": lambda folder: ServerProcess(folder, "--appendonly", "yes", "--appendfsync", "everysec"),
    "postgres": DatabaseProcess,
    "remote": BrokerProcess,
}
"""They keep what they have acknowledged when they are killed: what they have written is in the hands of the system."""


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.deep) if name == "remote" else name for name in SERVERS])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with empty_folder() as folder:
        folder.chmod(0o755)
        server = SERVERS[cast(str, request.param)](folder)
        server.start()
        yield server
        server.kill()


async def test_nothing_acknowledged_is_lost_when_the_server_is_killed_under_load(server: Server, tmp_path: Path):
    queue = Queue("letters", server.url(), remove_on_complete=False)
    fleet = Fleet(server.url(), queue.name, tmp_path)
    acknowledged: list[str] = []
    try:
        await fleet.start_many(2, concurrency=5, lock_duration=2, max_stalled_count=1_000)
        for _ in range(DEATHS):
            await _feed(queue, acknowledged)
            server.kill()
            await asyncio.sleep(0.05)
            server.start()
        await _feed(queue, acknowledged)
        # In delayed jobs too, and with nobody adding new ones.
        late = await queue.add("nap", 0.001, delay=1)
        acknowledged.append(late.id)

        await until(lambda: _all_completed(queue, acknowledged), "the end of all jobs")

        for job in await all_jobs(queue):
            assert job.token == decode(job.result or "null"), "the result is that of the run that was accepted"
        await check_counters(queue)
        assert [worker.exit_code for worker in fleet.workers] == [None, None]
    finally:
        fleet.close()
        await queue.close()


async def _feed(queue: Queue, acknowledged: list[str]) -> None:
    for _ in range(JOBS_BETWEEN):
        try:
            acknowledged.append((await queue.add("nap", 0.001)).id)
        except StoreUnavailable:
            # Not acknowledged: it may be there or not.
            continue


async def _all_completed(queue: Queue, acknowledged: list[str]) -> bool:
    states = {job.id: job.state for job in await all_jobs(queue)}
    missed = set(acknowledged) - states.keys()
    # One that went back in line while the pages were read is on none of them.
    assert all([await queue.get(id) for id in missed]), "an acknowledged job is gone"
    return not missed and set(states.values()) == {"completed"}
