"""A worker can be waited for: until it has nothing in its hands, and after a pause gets nothing any more."""

from __future__ import annotations

import asyncio
import threading

from ropeway import Job, Queue, Worker

from .watching import PATIENCE, entered


async def test_a_worker_that_is_not_running_is_idle(queue: Queue):
    await asyncio.wait_for(Worker(queue).idle(), PATIENCE)


async def test_an_idle_worker_is_not_waited_for(queue: Queue):
    worker = Worker(queue, _nothing)
    async with worker.started():
        await asyncio.wait_for(worker.idle(), PATIENCE)
        worker.pause()
        await asyncio.wait_for(worker.idle(), PATIENCE)


async def test_it_is_idle_when_its_last_job_is_settled(queue: Queue):
    begun, may_end = asyncio.Event(), asyncio.Event()

    async def hold(_: Job) -> str:
        begun.set()
        await may_end.wait()
        return "done"

    worker = Worker(queue, hold)
    async with worker.started():
        job = await queue.add("hold")
        await entered(begun)
        idle = asyncio.create_task(worker.idle())
        await asyncio.sleep(0.05)
        assert not idle.done()

        may_end.set()
        await asyncio.wait_for(idle, PATIENCE)
        assert (await job.refresh()).state == "completed"


async def test_after_a_pause_it_gets_no_more_jobs(queue: Queue):
    begun: list[str] = []

    async def note(job: Job) -> None:
        begun.append(job.id)
        await asyncio.sleep(0.001)

    worker = Worker(queue, note, concurrency=5)
    async with worker.started():
        for _ in range(10):
            await queue.add_many(["note"] * 40)
            worker.pause()
            await asyncio.wait_for(worker.idle(), PATIENCE)
            before = len(begun)
            counts = await queue.counts()
            assert (counts["active"], worker.running) == (0, [])

            await queue.add("note")
            await asyncio.sleep(0.01)
            assert len(begun) == before
            worker.resume()


async def test_a_dropped_job_is_not_waited_for(queue: Queue):
    begun = asyncio.Event()

    async def hold(_: Job) -> None:
        begun.set()
        await asyncio.Event().wait()

    worker = Worker(queue, hold)
    async with worker.started():
        job = await queue.add("hold")
        await entered(begun)
        idle = asyncio.create_task(worker.idle())
        await job.cancel()
        await asyncio.wait_for(idle, PATIENCE)


async def test_who_waits_is_told_of_its_end(queue: Queue):
    begun = asyncio.Event()

    async def hold(_: Job) -> None:
        begun.set()
        await asyncio.Event().wait()

    worker = Worker(queue, hold, grace=0)
    async with worker.started():
        await queue.add("hold")
        await entered(begun)
        idle = asyncio.create_task(worker.idle())
    await asyncio.wait_for(idle, PATIENCE)


async def test_other_threads_can_wait_for_it(queue: Queue):
    begun, may_end = threading.Event(), asyncio.Event()

    async def hold(_: Job) -> None:
        begun.set()
        await may_end.wait()

    worker = Worker(queue, hold)

    def pause_and_wait() -> int:
        assert begun.wait(PATIENCE)
        worker.pause()
        loop.call_soon_threadsafe(may_end.set)
        worker.idle_sync()
        return len(worker.running)

    loop = asyncio.get_running_loop()
    async with worker.started():
        await queue.add("hold")
        assert await asyncio.wait_for(asyncio.to_thread(pause_and_wait), PATIENCE) == 0


async def _nothing(_: Job) -> None:
    pass
