"""Workers whose server, or the way to it, is not what it was."""

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
from tests.stores.network import Proxy, proxied
from tests.stores.servers import ServerProcess
from tests.worker.watching import PATIENCE, Ear, Gate, told

from .conftest import StartServer, until

TROUBLE = ("lock-lost", "stalled", "cancelled", "failed")


@pytest.fixture
def server(start_server: StartServer) -> ServerProcess:
    return start_server()


@pytest.fixture
async def proxy(server: ServerProcess) -> AsyncIterator[Proxy]:
    async with proxied(server) as proxy:
        yield proxy


@pytest.fixture
async def queue(proxy: Proxy) -> AsyncIterator[Queue]:
    queue = Queue("letters", proxy.url(timeout="0.5"))
    yield queue
    await queue.close()


class Counting:
    def __init__(self) -> None:
        self.runs: Counter[Any] = Counter()

    async def __call__(self, job: Job) -> Any:
        self.runs[job.data] += 1
        return job.data


async def test_a_slow_network_slows_work_and_makes_nothing_stall(queue: Queue, proxy: Proxy):
    gate = Gate()
    jobs = await queue.add_many([*(("send", n) for n in range(20)), ("hold", 20)])
    counting = Counting()
    worker = Worker(queue, {"send": counting, "hold": gate}, lock_duration=1, stalled_interval=0.1)
    ear = Ear(worker, *TROUBLE)
    async with worker.started():
        proxy.latency = 0.3
        await told(queue, "completed", count=20)
        # Some locks' length more, which it has to renew.
        await gate.holds(1)
        held = jobs[-1]
        before = (await held.refresh()).lock_until
        assert before is not None
        await until(lambda: _is_later(held, before.timestamp() + 1))
        proxy.latency = 0
        gate.opened.set()
        await told(queue, "completed", held)

    assert ear.names == []
    assert counting.runs == dict.fromkeys(range(20), 1)


async def test_a_server_that_forgets_its_scripts_under_work_disturbs_nobody(queue: Queue, server: ServerProcess):
    async def forget(job: Job) -> Any:
        # Between any two calls of the worker.
        server.ask("SCRIPT", "FLUSH")
        return job.data

    worker = Worker(queue, forget, concurrency=5, lock_duration=1)
    ear = Ear(worker, *TROUBLE)
    async with worker.started():
        await asyncio.gather(*(queue.add("send", n) for n in range(100)))
        await told(queue, "completed", count=100)
    assert ear.names == []


async def _is_later(job: Any, moment: float) -> bool:
    lock = (await job.refresh()).lock_until
    return lock is not None and lock.timestamp() > moment


async def test_a_worker_that_starts_before_its_server_waits_for_it(
    queue: Queue, proxy: Proxy, caplog: pytest.LogCaptureFixture
):
    await proxy.stop()
    worker = Worker(queue, Counting())
    running = asyncio.create_task(worker.run())
    await until(lambda: caplog.text.count("cannot be reached") >= 2)
    await proxy.start()

    assert await (await queue.add("send", 1)).result(timeout=PATIENCE) == 1
    worker.stop()
    await running


@pytest.mark.parametrize("trouble", ["cut", "silent"])
async def test_a_worker_that_lost_its_connections_takes_a_delayed_job_with_nobody_adding_one(
    queue: Queue, proxy: Proxy, trouble: str
):
    worker = Worker(queue, Counting())
    ear = Ear(worker, "completed")
    async with worker.started():
        await queue.add("send", 1)
        await ear.hear("completed")
        await queue.add("send", 2, delay=0.5)
        if trouble == "cut":
            await proxy.stop()
            await proxy.start()
        else:
            proxy.fall_silent()
            proxy.heal()

        await ear.hear("completed", count=2)
    assert [event.data for event in ear.events] == [{"result": 1}, {"result": 2}]


async def test_a_worker_that_has_no_server_for_longer_than_a_lock_stops_its_handlers_and_goes_on_later(
    queue: Queue, proxy: Proxy
):
    gate = Gate()

    async def handle(job: Job) -> str:
        return await gate(job) if job.record.attempts_started == 1 else "again"

    async with Worker(queue, handle, lock_duration=0.5, stalled_interval=0.05).started():
        job = await queue.add("send")
        await gate.holds(1)
        await proxy.stop()
        await gate.holds(0)
        await proxy.start()

        assert await job.result(timeout=PATIENCE) == "again"


async def test_a_worker_that_has_no_server_stops_its_handlers_before_others_begin(
    queue: Queue, proxy: Proxy, server: ServerProcess
):
    gate, begun = Gate(), asyncio.Event()
    still_running: list[int] = []

    async def take_over(job: Job) -> None:
        still_running.append(len(gate.running))
        begun.set()

    options: Any = {"lock_duration": 2, "stalled_interval": 0.05}
    async with Worker(queue, gate, **options).started():
        await queue.add("send")
        await gate.holds(1)
        async with (
            Queue("letters", server.url()) as there,
            Worker(there, take_over, **options).started(),
        ):
            await proxy.stop()
            await asyncio.wait_for(begun.wait(), PATIENCE)
            await proxy.start()
    assert still_running == [0]


async def test_workers_are_told_when_somebody_empties_the_server(queue: Queue, server: ServerProcess):
    gate = Gate()
    worker = Worker(queue, {"hold": gate, "send": Counting()}, lock_duration=1, stalled_interval=0.05)
    ear = Ear(worker, "store-reset", "lock-lost", "cancelled", "completed")
    async with worker.started():
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
    async with worker.started():
        await (await queue.add("send", 1)).result(timeout=PATIENCE)
        await queue.obliterate()
        await queue.resume()
        await (await queue.add("send", 2, delay=0.3)).result(timeout=PATIENCE)
    assert ear.names == []


async def test_jobs_whose_data_was_evicted_are_told_of(queue: Queue, server: ServerProcess):
    job = await queue.add("send", 1)
    server.ask("HDEL", "{ropeway:letters}:jobs", shortened(job.id))
    async with Worker(queue, Counting()).started():
        lost = await told(queue, "removed", job)

        assert lost.data == {"prev": "waiting", "reason": "the server lost its data"}
        assert await (await queue.add("send", 2)).result(timeout=PATIENCE) == 2
