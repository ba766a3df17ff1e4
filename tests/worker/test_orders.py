"""Workers that are paused, resumed and drained from elsewhere."""

from __future__ import annotations

import asyncio

import pytest

from ropeway import Queue, Worker
from ropeway.client.workers import WorkerInfo, WorkerOrder, read_worker
from ropeway.errors import WorkerNotFound
from ropeway.store.contract import Store
from ropeway.worker.maintenance import presence
from tests.patience import PATIENCE


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker looks for orders more often."""
    monkeypatch.setattr(presence, "ORDERS_INTERVAL", 0.05)


async def said(queue: Queue, worker: Worker, **expected: bool) -> WorkerInfo:
    """Waits until the record of a worker says so."""
    async with asyncio.timeout(PATIENCE):
        while True:
            info = await read_worker(queue.store, worker.id)
            if all(getattr(info, name) == value for name, value in expected.items()):
                return info
            await asyncio.sleep(0.02)


@pytest.mark.every_store
async def test_a_paused_worker_leaves_jobs_to_others(store: Store):
    queue = Queue("mail", store=store)

    def named(name):
        async def who(job):
            return name

        return {"who": who}

    async with Worker(queue, named("first")) as first:
        await queue.pause_worker(first.id)
        await said(queue, first, paused=True)
        await first.idle()
        async with Worker(queue, named("second")):
            jobs = await queue.add_many(["who"] * 5)
            assert [await job.result(timeout=PATIENCE) for job in jobs] == ["second"] * 5
        await queue.resume_worker(first.id)
        await said(queue, first, paused=False)
        assert await (await queue.add("who")).result(timeout=PATIENCE) == "first"


@pytest.mark.every_store
async def test_a_drained_worker_finishes_what_it_has_and_ends(store: Store):
    queue = Queue("mail", store=store)
    has_begun, may_end = asyncio.Event(), asyncio.Event()

    async def hold(job):
        has_begun.set()
        await may_end.wait()
        return "done"

    worker = Worker(queue, {"hold": hold}, grace=0)
    held = await queue.add("hold")
    running = asyncio.create_task(worker.run())
    await has_begun.wait()
    await queue.drain_worker(worker.id)
    await said(queue, worker, draining=True)
    later = await queue.add("hold")
    may_end.set()
    await asyncio.wait_for(running, PATIENCE)
    assert await held.result(timeout=PATIENCE) == "done"
    assert await later.state() == "waiting"
    assert (worker.drained, worker.draining, worker.paused) == (True, False, False)
    with pytest.raises(WorkerNotFound):
        await queue.drain_worker(worker.id)


async def test_a_drain_can_be_taken_back_while_jobs_run(store: Store):
    queue = Queue("mail", store=store)
    has_begun, may_end = asyncio.Event(), asyncio.Event()

    async def hold(job):
        has_begun.set()
        await may_end.wait()

    async with Worker(queue, {"hold": hold}) as worker:
        first = await queue.add("hold")
        await has_begun.wait()
        worker.drain()
        worker.resume()
        may_end.set()
        await first.result(timeout=PATIENCE)
        await (await queue.add("hold")).result(timeout=PATIENCE)
        assert not worker.draining
    assert not worker.drained


async def test_only_a_worker_of_the_queue_can_be_told(store: Store):
    queue, other = Queue("mail", store=store), Queue("other", store=store)
    async with Worker(queue, {"send": print}) as worker:
        with pytest.raises(WorkerNotFound):
            await other.pause_worker(worker.id)
        with pytest.raises(WorkerNotFound):
            await queue.pause_worker("nobody")


def test_an_order_is_for_one_run_and_its_queues():
    worker = Worker(Queue("mail", "memory://")).info
    for started_at, queues, is_for in (
        (worker.started_at, worker.queues, True),
        (worker.started_at - 1, worker.queues, False),
        (worker.started_at, ("other",), False),
    ):
        assert WorkerOrder("1", "drain", started_at, queues).is_for(worker) == is_for


def test_a_worker_that_does_not_run_is_stopped_by_a_drain():
    worker = Worker(Queue("mail", "memory://"), {"send": print})
    worker.drain()
    worker.run_sync()
    assert not worker.draining


def test_without_a_loop(tmp_path):
    queue = Queue("mail", f"sqlite:///{tmp_path}/jobs.db")
    with Worker(queue, {"send": print}) as worker:
        queue.sync.pause_worker(worker.id)
        queue.sync.resume_worker(worker.id)
        queue.sync.drain_worker(worker.id)
    with pytest.raises(WorkerNotFound):
        queue.sync.pause_worker(worker.id)
