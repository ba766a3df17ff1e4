"""Companions: what a worker does for its queues beside their jobs, with slots of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from ropeway import Job, Queue, Worker
from ropeway.worker.system_queues import SystemQueue
from tests.patience import PATIENCE

from .watching import Gate

SYSTEM = "ropeway.test"
SLOTS = 5


def system_queue(handler: Callable[[Job], Awaitable[Any]], *, serves: bool = True) -> SystemQueue:
    class Served:
        async def run(self, job: Job) -> Any:
            return await handler(job)

        def close(self) -> None:
            pass

    return SystemQueue(SYSTEM, SLOTS, lambda _: Served(), lambda _: True, lambda *_: serves, lambda _: False)


def accompanied(queue: Queue, handler: Callable[[Job], Awaitable[Any]], system: SystemQueue, **options: Any) -> Worker:
    worker = Worker(queue, handler, **options)
    worker._system_queues = (system,)
    return worker


async def nothing(_: Job) -> None:
    pass


async def test_a_companion_runs_jobs_while_every_slot_of_its_worker_is_taken(queue: Queue):
    gate = Gate()
    system = Queue(SYSTEM, store=queue.store)
    async with accompanied(queue, gate, system_queue(nothing), concurrency=1):
        await queue.add("long")
        await gate.holds(1)
        await (await system.add("short")).result(timeout=PATIENCE)
        gate.opened.set()


async def test_jobs_run_while_every_slot_of_a_companion_is_taken(queue: Queue):
    gate = Gate()
    system = Queue(SYSTEM, store=queue.store)
    async with accompanied(queue, nothing, system_queue(gate), concurrency=1):
        await system.add_many(["hangs"] * SLOTS)
        await gate.holds(SLOTS)
        await (await queue.add("short")).result(timeout=PATIENCE)
        gate.opened.set()


async def test_a_worker_serves_what_others_left_in_a_system_queue(queue: Queue):
    system = Queue(SYSTEM, store=queue.store)
    left = await system.add("left")
    async with accompanied(queue, nothing, system_queue(nothing, serves=False)):
        await left.result(timeout=PATIENCE)


@pytest.mark.every_store
async def test_a_shutdown_waits_for_what_a_companion_has_begun(queue: Queue):
    gate = Gate()
    system = Queue(SYSTEM, store=queue.store)
    async with accompanied(queue, nothing, system_queue(gate)) as worker:
        begun = await system.add("begun")
        await gate.holds(1)
        worker.stop()
        asyncio.get_running_loop().call_soon(gate.opened.set)
    assert await begun.state() == "completed"


async def test_a_companion_that_hangs_is_ended_with_the_grace_and_its_job_waits_again(queue: Queue):
    gate = Gate()
    system = Queue(SYSTEM, store=queue.store)
    async with accompanied(queue, nothing, system_queue(gate), grace=0.05, cancel_grace=0.05):
        hangs = await system.add("hangs")
        await gate.holds(1)
    seen = await hangs.refresh()
    assert (seen.state, seen.attempts_made) == ("waiting", 0)


async def test_a_worker_without_need_has_no_companion(queue: Queue):
    async with accompanied(queue, nothing, system_queue(nothing, serves=False)) as worker:
        await (await queue.add("plain")).result(timeout=PATIENCE)
        assert worker._runtime is not None
        assert worker._runtime.companions.companions is None
