"""Workers whose server forgets something."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest

from ropeway import Job, Queue, Worker
from ropeway.stores.redis.ids import shortened
from ropeway.stores.redis.keys import Keys
from ropeway.stores.redis.target import DEFAULT_PREFIX
from tests.patience import PATIENCE
from tests.stores.servers import ServerProcess
from tests.stores.waiting import until
from tests.worker.watching import TROUBLE, Counting, Ear, Gate, told

from .conftest import StartServer


@pytest.fixture
def server(start_server: StartServer) -> ServerProcess:
    return start_server()


@pytest.fixture
async def queue(server: ServerProcess) -> AsyncIterator[Queue]:
    async with Queue("letters", server.url()) as queue:
        yield queue


async def test_a_server_that_forgets_its_scripts_under_work_disturbs_nobody(queue: Queue, server: ServerProcess):
    async def forget(job: Job) -> Any:
        # Between any two calls of the worker.
        server.ask("SCRIPT", "FLUSH")
        return job.data

    worker = Worker(queue, forget, concurrency=5, lock_duration=1)
    ear = Ear(worker, *TROUBLE)
    async with worker:
        await asyncio.gather(*(queue.add("send", n) for n in range(100)))
        await told(queue, "completed", count=100)
    assert ear.names == []


async def test_workers_are_told_when_somebody_empties_the_server(queue: Queue, server: ServerProcess):
    gate = Gate()
    worker = Worker(queue, {"hold": gate, "send": Counting()}, lock_duration=1, stalled_interval=0.05)
    ear = Ear(worker, "store-reset", "lock-lost", "cancelled", "completed")
    async with worker:
        await queue.add("hold", 1)
        await gate.holds(1)
        life = Keys(DEFAULT_PREFIX).life
        await until(lambda: _exists(server, life))
        server.ask("FLUSHALL")

        assert (await ear.hear("store-reset")).data == {"queue": "letters"}
        gate.opened.set()
        assert await (await queue.add("send", 2)).result(timeout=PATIENCE) == 2
        await until(lambda: _exists(server, life))
    assert Counter(ear.names)["store-reset"] == 1
    assert [event.job.data for event in ear.events if event.job and event.name == "completed"] == [2]
    assert {"lock-lost", "cancelled"} & set(ear.names), "the job that ran is nobody's any more"


def _exists(server: ServerProcess, key: str) -> bool:
    return server.ask("EXISTS", key) == b":1\r\n"


async def test_a_queue_that_was_obliterated_is_no_emptied_server(queue: Queue):
    worker = Worker(queue, Counting(), stalled_interval=0.05)
    ear = Ear(worker, "store-reset")
    async with worker:
        await (await queue.add("send", 1)).result(timeout=PATIENCE)
        await queue.obliterate()
        await queue.resume()
        await (await queue.add("send", 2, delay=0.3)).result(timeout=PATIENCE)
    assert ear.names == []


async def test_jobs_whose_data_was_evicted_are_told_of(queue: Queue, server: ServerProcess):
    job = await queue.add("send", 1)
    server.ask("HDEL", "{ropeway:letters}:jobs", shortened(job.id))
    async with Worker(queue, Counting()):
        lost = await told(queue, "removed", job)

        assert lost.data == {"prev": "waiting", "reason": "the server lost its data"}
        assert await (await queue.add("send", 2)).result(timeout=PATIENCE) == 2
