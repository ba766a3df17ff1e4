"""A worker can be waited for: until it has nothing in its hands, and after a pause gets nothing any more."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeAlias

import pytest
import uvloop
from msgspec.structs import replace

from ropeway import Job, Queue, Worker, connect
from ropeway.store.values import Claimed
from ropeway.worker.runtime import Runtime
from tests.client.fixtures import MakeQueue
from tests.client.tampering import Door, Tampering, tampered
from tests.patience import PATIENCE

from .watching import entered

NewLoop: TypeAlias = Callable[[], asyncio.AbstractEventLoop]


async def test_a_worker_that_is_not_running_is_idle(queue: Queue):
    await asyncio.wait_for(Worker(queue).idle(), PATIENCE)


async def test_an_idle_worker_is_not_waited_for(queue: Queue):
    worker = Worker(queue, _nothing)
    async with worker:
        await asyncio.wait_for(worker.idle(), PATIENCE)
        worker.pause()
        await asyncio.wait_for(worker.idle(), PATIENCE)


@pytest.mark.every_store
async def test_it_is_idle_when_its_last_job_is_settled(tampered_queue: Queue, tampering: Tampering):
    door = Door()
    tampering.before["settle"] = door.pass_through
    worker = Worker(tampered_queue, _nothing)
    async with worker:
        job = await tampered_queue.add("nothing")
        await entered(door.reached)
        idle = asyncio.create_task(worker.idle())
        while worker.running:  # noqa: ASYNC110 - its handler has ended, and its slot is about to
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not idle.done()

        door.opened.set()
        await asyncio.wait_for(idle, PATIENCE)
        assert (await job.refresh()).state == "completed"


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_a_job_that_is_due_and_not_to_be_had_yet_is_asked_for_again(new_loop: NewLoop):
    """As a claim answers while another call promotes the job."""
    tampering = Tampering()

    def is_due(claimed: Claimed) -> Claimed:
        return claimed if claimed.jobs or tampering.calls["claim"] > 5 else replace(claimed, again_at=claimed.now)

    async def work() -> None:
        tampering.after["claim"] = is_due
        queue = Queue("letters", store=tampered(connect("memory://"), tampering))
        async with Worker(queue, _nothing):
            while tampering.calls["claim"] <= 5:  # noqa: ASYNC110 - workers tell nobody of claims without jobs
                await asyncio.sleep(0.001)
            job = await queue.add("nothing")
            await job.result(timeout=PATIENCE)

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(asyncio.wait_for(work(), PATIENCE))


@pytest.mark.every_store
async def test_after_a_pause_it_gets_no_more_jobs(queue: Queue):
    begun: list[str] = []

    async def note(job: Job) -> None:
        begun.append(job.id)
        await asyncio.sleep(0.001)

    worker, other = Worker(queue, note, concurrency=5), Worker(queue)
    async with worker:
        for _ in range(10):
            await queue.add_many(["note"] * 40)
            worker.pause()
            await asyncio.wait_for(worker.idle(), PATIENCE)
            before = len(begun)
            assert ((await queue.counts())["active"], worker.running) == (0, [])

            await queue.add("note", priority=-1)
            [theirs] = await other.claim(wait=PATIENCE)
            await theirs.complete()
            assert (len(begun), theirs.id in begun) == (before, False)
            worker.resume()


async def test_it_is_waited_for_in_all_its_queues(make_queue: MakeQueue):
    queues = [make_queue("first"), make_queue("second")]
    gates = {queue.name: asyncio.Event() for queue in queues}
    begun = {queue.name: asyncio.Event() for queue in queues}

    async def hold(job: Job) -> None:
        begun[job.queue.name].set()
        await gates[job.queue.name].wait()

    worker = Worker(queues, hold)
    async with worker:
        jobs = [await queue.add("hold") for queue in queues]
        for each in begun.values():
            await entered(each)
        worker.pause()
        idle = asyncio.create_task(worker.idle())
        gates["first"].set()
        await jobs[0].result(timeout=PATIENCE)
        assert not idle.done()

        gates["second"].set()
        await asyncio.wait_for(idle, PATIENCE)
        assert [(await job.refresh()).state for job in jobs] == ["completed", "completed"]


async def test_who_waits_is_not_held_up_by_a_worker_that_goes_on(queue: Queue):
    begun, may_end = asyncio.Event(), asyncio.Event()

    async def hold(_: Job) -> None:
        begun.set()
        await may_end.wait()

    worker = Worker(queue, hold)
    async with worker:
        await queue.add("hold")
        await entered(begun)
        worker.pause()
        idle = asyncio.create_task(worker.idle())
        worker.resume()
        may_end.set()
        await asyncio.wait_for(idle, PATIENCE)


async def test_a_loop_that_has_just_ended_is_not_waited_for(queue: Queue):
    worker = Worker(queue, _nothing)
    ended = await asyncio.to_thread(asyncio.run, _runtime_of(worker))
    await asyncio.wait_for(ended.idle(), PATIENCE)


async def test_a_dropped_job_is_not_waited_for(queue: Queue):
    begun = asyncio.Event()

    async def hold(_: Job) -> None:
        begun.set()
        await asyncio.Event().wait()

    worker = Worker(queue, hold)
    async with worker:
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
    async with worker:
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
    async with worker:
        await queue.add("hold")
        assert await asyncio.wait_for(asyncio.to_thread(pause_and_wait), PATIENCE) == 0


async def _nothing(_: Job) -> None:
    pass


async def _runtime_of(worker: Worker) -> Runtime:
    async with worker:
        assert worker._runtime is not None
        return worker._runtime


async def test_a_job_that_ends_without_an_outcome_is_told_of_while_a_claim_is_away(
    tampered_queue: Queue, tampering: Tampering
):
    begun = asyncio.Event()

    async def hold(_: Job) -> None:
        begun.set()
        await asyncio.Event().wait()

    worker, door = Worker(tampered_queue, hold), Door()
    async with worker:
        job = await tampered_queue.add("hold")
        await entered(begun)
        tampering.before["claim"] = door.pass_through
        assert worker._runtime is not None
        worker._runtime.dispatcher.wake_all()
        await entered(door.reached)
        idle = asyncio.create_task(worker.idle())
        await job.cancel()

        await asyncio.wait_for(idle, PATIENCE)
        door.opened.set()


async def test_a_loop_that_stopped_is_not_waited_for(queue: Queue):
    loop, worker = asyncio.new_event_loop(), Worker(queue, _nothing)
    await asyncio.to_thread(loop.run_until_complete, worker.__aenter__())
    try:
        await asyncio.wait_for(worker.idle(), PATIENCE)
    finally:
        await asyncio.to_thread(loop.run_until_complete, worker.__aexit__(None, None, None))
        await asyncio.to_thread(loop.run_until_complete, queue.store.close())
        loop.close()
