"""Workers whose sessions end, and whose server restarts or is full."""

from __future__ import annotations

import asyncio
import signal

import pytest

from ropeway import Queue, Worker
from ropeway.errors import StoreUnavailable
from tests.patience import PATIENCE
from tests.stores.databases import DatabaseProcess
from tests.stores.network import Proxy
from tests.stores.waiting import until
from tests.worker.watching import TROUBLE, Counting, Ear, Gate


async def test_locks_are_kept_while_the_connections_of_claims_and_outcomes_are_dead(
    proxy: Proxy, server: DatabaseProcess
):
    """Heartbeats have connections of their own."""
    gate = Gate()
    queue = Queue("letters", proxy.url(timeout="1"))
    worker = Worker(queue, {"hold": gate}, lock_duration=3, stalled_interval=0.05)
    ear = Ear(worker, *TROUBLE)
    async with worker:
        await queue.add("hold")
        await gate.holds(1)
        for link in queue.store._executor.resources().pool._links:  # type: ignore[attr-defined]
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
        async with worker:
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
        async with worker:
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
    async with Queue("letters", server.url()) as queue, Worker(queue, gate):
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
