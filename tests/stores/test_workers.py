"""Workers whose server, or the way to it, is not what it was."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from ropeway import Job, JobHandle, Queue, Worker
from tests.patience import PATIENCE
from tests.worker.watching import TROUBLE, Counting, Ear, Gate, told

from .conftest import AnyServer
from .network import Proxy
from .waiting import until


@pytest.fixture
async def queue(proxy: Proxy) -> AsyncIterator[Queue]:
    # Not entered: that would connect it.
    queue = Queue("letters", proxy.url(timeout="0.5"))
    yield queue
    await queue.close()


async def test_a_slow_network_slows_work_and_makes_nothing_stall(proxy: Proxy):
    gate, counting = Gate(), Counting()
    async with Queue("letters", proxy.url()) as queue:
        jobs = await queue.add_many([*(("send", n) for n in range(20)), ("hold", 20)])
        worker = Worker(queue, {"send": counting, "hold": gate}, lock_duration=2, stalled_interval=0.1)
        ear = Ear(worker, *TROUBLE)
        async with worker:
            proxy.latency = 0.15
            await told(queue, "completed", count=20)
            # Some locks' length more, which it has to renew.
            await gate.holds(1)
            held = jobs[-1]
            before = (await held.refresh()).lock_until
            assert before is not None
            await until(lambda: _is_later(held, before.timestamp() + 1.4))
            proxy.latency = 0
            gate.opened.set()
            await told(queue, "completed", held)

    assert ear.names == []
    assert counting.runs == dict.fromkeys(range(20), 1)


async def _is_later(job: JobHandle, moment: float) -> bool:
    lock = (await job.refresh()).lock_until
    return lock is not None and lock.timestamp() > moment


async def test_a_worker_that_starts_before_its_server_waits_for_it(
    queue: Queue, proxy: Proxy, caplog: pytest.LogCaptureFixture
):
    await proxy.stop()
    worker = Worker(queue, Counting())
    running = asyncio.create_task(worker.run())
    await until(lambda: caplog.text.count("cannot be reached") >= 2)
    proxy.start()

    assert await (await queue.add("send", 1)).result(timeout=PATIENCE) == 1
    worker.stop()
    await running


@pytest.mark.parametrize("trouble", ["cut", "silent"])
@pytest.mark.parametrize(
    ("server", "options"),
    [("redis", {}), ("postgres", {}), ("postgres", {"listen": "off"}), ("remote", {})],
    indirect=["server"],
    ids=["redis", "postgres", "postgres that is polled", "remote"],
)
async def test_a_worker_that_lost_its_connections_takes_a_delayed_job_with_nobody_adding_one(
    proxy: Proxy, options: dict[str, str], trouble: str
):
    async with Queue("letters", proxy.url(timeout="0.5", **options)) as queue:
        worker = Worker(queue, Counting())
        ear = Ear(worker, "completed")
        async with worker:
            await queue.add("send", 1)
            await ear.hear("completed")
            await queue.add("send", 2, delay=0.5)
            if trouble == "cut":
                await proxy.stop()
                proxy.start()
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

    async with Worker(queue, handle, lock_duration=0.5, stalled_interval=0.05):
        job = await queue.add("send")
        await gate.holds(1)
        await proxy.stop()
        await gate.holds(0)
        proxy.start()

        assert await job.result(timeout=PATIENCE) == "again"


async def test_a_worker_that_has_no_server_stops_its_handlers_before_others_begin(
    queue: Queue, proxy: Proxy, server: AnyServer
):
    gate, begun = Gate(), asyncio.Event()
    still_running: list[int] = []

    async def take_over(job: Job) -> None:
        still_running.append(len(gate.running))
        begun.set()

    options: Any = {"lock_duration": 2, "stalled_interval": 0.05}
    async with Worker(queue, gate, **options):
        await queue.add("send")
        await gate.holds(1)
        async with (
            Queue("letters", server.url()) as there,
            Worker(there, take_over, **options),
        ):
            await proxy.stop()
            await asyncio.wait_for(begun.wait(), PATIENCE)
            proxy.start()
    assert still_running == [0]
