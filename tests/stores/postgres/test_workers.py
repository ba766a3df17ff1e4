"""Workers whose server, or the way to it, is not what it was."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest

from ropeway import Job, Queue, Worker
from ropeway.errors import StoreUnavailable
from tests.stores.databases import DatabaseProcess
from tests.stores.network import Proxy
from tests.worker.watching import PATIENCE, Ear, Gate, told

from .conftest import until

TROUBLE = ("lock-lost", "stalled", "cancelled", "failed")


@pytest.fixture
async def queue(proxy: Proxy) -> AsyncIterator[Queue]:
    queue = Queue("letters", proxy.url(timeout="0.5"))
    yield queue
    await queue.close()


class Counting:
    def __init__(self) -> None:
        self.runs: Counter[Any] = Counter()
        self._news = asyncio.Event()

    async def __call__(self, job: Job) -> Any:
        self.runs[job.data] += 1
        self._news.set()
        return job.data

    async def more(self) -> None:
        """Waits for the next run, or a moment if that was the last."""
        self._news.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(0.5):
                await self._news.wait()


async def test_a_slow_network_slows_work_and_makes_nothing_stall(proxy: Proxy):
    gate = Gate()
    queue = Queue("letters", proxy.url())
    jobs = await queue.add_many([*(("send", n) for n in range(20)), ("hold", 20)])
    counting = Counting()
    worker = Worker(queue, {"send": counting, "hold": gate}, lock_duration=1.5, stalled_interval=0.1)
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

    await queue.close()
    assert ear.names == []
    assert counting.runs == dict.fromkeys(range(20), 1)


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
@pytest.mark.parametrize("listen", ["on", "off"])
async def test_a_worker_that_lost_its_connections_takes_a_delayed_job_with_nobody_adding_one(
    proxy: Proxy, trouble: str, listen: str
):
    async with Queue("letters", proxy.url(timeout="0.5", listen=listen)) as queue:
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


async def test_locks_are_kept_while_the_connections_of_claims_and_outcomes_are_dead(
    proxy: Proxy, server: DatabaseProcess
):
    """Heartbeats have connections of their own."""
    gate = Gate()
    queue = Queue("letters", proxy.url(timeout="1"))
    worker = Worker(queue, {"hold": gate}, lock_duration=3, stalled_interval=0.05)
    ear = Ear(worker, *TROUBLE)
    async with worker.started():
        await queue.add("hold")
        await gate.holds(1)
        for link in queue.store._everywhere.here().lanes._links:  # type: ignore[attr-defined]
            link._loop.remove_reader(link._fd)
        renewed = "SELECT 1 FROM ropeway.active WHERE renewed_at > started_at"
        await until(lambda: server.execute(renewed))
        gate.opened.set()
        await until(lambda: server.execute("SELECT 1 FROM ropeway.finished"))
    await queue.close()
    assert ear.names == []


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT], ids=["fast", "immediate"])
async def test_locks_survive_a_restart_and_work_goes_on(
    server: DatabaseProcess, how: signal.Signals, caplog: pytest.LogCaptureFixture
):
    gate, counting = Gate(), Counting()
    async with Queue("letters", server.url()) as queue:
        worker = Worker(queue, {"hold": gate, "send": counting}, lock_duration=10)
        ear = Ear(worker, *TROUBLE)
        async with worker.started():
            held = await queue.add("hold", -1)
            await gate.holds(1)
            for number in range(100):
                if number in (30, 60):
                    restarting = asyncio.create_task(asyncio.to_thread(server.restart, how))
                await _add_for_sure(queue, number)
            await restarting
            gate.opened.set()
            assert await held.result(timeout=PATIENCE) == "done"
            await until(lambda: len(counting.runs) == 100)

    if how == signal.SIGINT:
        # A claim whose answer was lost is asked for again, so nothing ran twice.
        assert ear.names == []
        assert gate.runs == 1
        assert set(counting.runs.values()) == {1}
    assert "Traceback" not in caplog.text


async def _add_for_sure(queue: Queue, number: int) -> None:
    while True:
        try:
            await queue.add("send", number, id=f"job-{number}")
        except StoreUnavailable:
            continue
        return


async def test_a_worker_whose_sessions_are_ended_again_and_again_neither_crashes_nor_loses_a_job(
    server: DatabaseProcess,
):
    counting = Counting()
    async with Queue("letters", server.url()) as queue:
        jobs = await queue.add_many([("send", number) for number in range(100)])
        worker = Worker(queue, counting, concurrency=5)
        async with worker.started():
            for _ in range(5):
                server.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'ropeway'"
                )
                # Some work in between.
                await counting.more()
            await until(lambda: server.execute("SELECT count(*) FROM ropeway.finished") == [(len(jobs),)])
    assert counting.runs == dict.fromkeys(range(100), 1)


async def test_outcomes_wait_for_a_full_disk_to_have_room(server: DatabaseProcess, caplog: pytest.LogCaptureFixture):
    gate = Gate()
    async with Queue("letters", server.url()) as queue, Worker(queue, gate).started():
        job = await queue.add("send")
        await gate.holds(1)
        server.execute(
            "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END $$"
        )
        server.execute("CREATE TRIGGER full_disk BEFORE INSERT ON ropeway.finished EXECUTE FUNCTION full_disk()")
        gate.opened.set()
        await until(lambda: "disk is full" in caplog.text)
        server.execute("DROP TRIGGER full_disk ON ropeway.finished")

        assert await job.result(timeout=PATIENCE) == "done"
    assert gate.runs == 1
