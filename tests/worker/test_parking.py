"""Attempts of pipelines wait for the store outside of their slots: nobody notices."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import Final

import pytest

from ropeway import Job, JobCancelled, JobFailed, Phase, PhaseContext, Pipeline, Queue, Worker
from tests.client.tampering import Door, Tampering
from tests.patience import PATIENCE

TENANT: Final = ContextVar("tenant", default="nobody")


async def nothing(job: Job, ctx: PhaseContext) -> None:
    pass


TWO: Final = Pipeline([Phase("download", nothing), Phase("process", nothing)])


@pytest.fixture
def door(tampering: Tampering) -> Door:
    """In the way of the first write between two phases."""
    door = Door()
    tampering.before["update"] = door.pass_through
    return door


async def test_variables_of_a_context_are_those_of_the_job_in_all_its_phases(queue: Queue):
    async def enter(job: Job, ctx: PhaseContext) -> None:
        assert TENANT.get() == "nobody"
        TENANT.set(job.id)

    async def look(job: Job, ctx: PhaseContext) -> str:
        return TENANT.get()

    async with Worker(queue, Pipeline([Phase("enter", enter), Phase("look", look)])):
        jobs = await queue.add_many(["import"] * 5)
        found = [await job.result(timeout=PATIENCE) for job in jobs]

    assert found == [job.id for job in jobs]


async def test_a_job_that_waits_for_the_store_takes_no_slot_from_others(tampered_queue: Queue, door: Door):
    async with Worker(tampered_queue, {"import": TWO, "send": lambda _: "sent"}, concurrency=2) as worker:
        slow = await tampered_queue.add("import")
        await door.reached.wait()
        job = await tampered_queue.add("send")
        assert await job.result(timeout=PATIENCE) == "sent"
        assert [job.id for job in worker.running] == [slow.id]
        door.opened.set()
        await slow.result(timeout=PATIENCE)


async def test_it_is_cancelled_although_the_store_does_not_answer(tampered_queue: Queue, door: Door):
    async with Worker(tampered_queue, {"import": TWO, "send": lambda _: "sent"}, concurrency=1):
        job = await tampered_queue.add("import")
        await door.reached.wait()
        await tampered_queue.cancel(job.id)
        with pytest.raises(JobCancelled):
            await job.result(timeout=PATIENCE)
        # The only slot is free again.
        await (await tampered_queue.add("send")).result(timeout=PATIENCE)
        door.opened.set()


async def test_it_is_handed_back_when_the_worker_shuts_down(tampered_queue: Queue, door: Door):
    async with Worker(tampered_queue, TWO, grace=0):
        job = await tampered_queue.add("import")
        await door.reached.wait()
    door.opened.set()

    snapshot = await job.refresh()
    assert (snapshot.state, snapshot.attempts_made) == ("waiting", 0)


async def test_a_cancel_that_a_phase_asked_for_itself_hits_its_own_job(queue: Queue):
    async def cancel(job: Job, ctx: PhaseContext) -> None:
        if job.data == "cancel" and (task := asyncio.current_task()) is not None:
            task.cancel()

    async with Worker(queue, Pipeline([Phase("a", cancel), Phase("b", nothing)]), concurrency=1):
        cancelled, other = await queue.add_many([("import", "cancel"), ("import", "go on")])
        with pytest.raises(JobFailed, match="CancelledError"):
            await cancelled.result(timeout=PATIENCE)
        await other.result(timeout=PATIENCE)
