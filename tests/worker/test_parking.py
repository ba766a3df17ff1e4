"""Attempts of pipelines wait for the store outside of their slots: nobody notices."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from itertools import count
from typing import Final

import pytest

from ropeway import (
    Job,
    JobCancelled,
    JobFailed,
    JobRequest,
    Phase,
    PhaseContext,
    Pipeline,
    Queue,
    StoreUnavailable,
    Worker,
)
from ropeway.store.offers import Offers
from tests.client.tampering import Door, Outage, Tampering
from tests.patience import PATIENCE

TENANT: Final = ContextVar("tenant", default="nobody")


async def nothing(job: Job, ctx: PhaseContext) -> None:
    pass


TWO: Final = Pipeline([Phase("download", nothing), Phase("process", nothing)])


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that shuts down does not wait for a store that does not answer."""
    monkeypatch.setattr("ropeway.worker.shutdown.SECOND_WAIT", 0)
    monkeypatch.setattr("ropeway.worker.shutdown.FINAL_CALL_TIMEOUT", 0.05)


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


@pytest.mark.usefixtures("impatient")
async def test_it_is_handed_back_when_the_worker_shuts_down(tampered_queue: Queue, door: Door):
    async with Worker(tampered_queue, TWO, grace=0):
        job = await tampered_queue.add("import")
        await door.reached.wait()
    door.opened.set()

    snapshot = await job.refresh()
    assert (snapshot.state, snapshot.attempts_made) == ("waiting", 0)


@pytest.mark.usefixtures("impatient")
async def test_the_end_of_a_phase_that_failed_before_is_kept_though_nobody_hears_that_it_is_stored(
    tampered_queue: Queue, tampering: Tampering
):
    ends = Door()
    runs: list[int] = []

    async def download(job: Job, ctx: PhaseContext) -> int:
        runs.append(job.attempt)
        if job.attempt == 1:
            raise ConnectionError
        tampering.after["update"] = ends.pass_through
        return 5

    async def process(job: Job, ctx: PhaseContext) -> int:
        return int(ctx.phase_result("download"))

    pipeline = Pipeline([Phase("download", download), Phase("process", process)])
    async with Worker(tampered_queue, pipeline, grace=0):
        job = await tampered_queue.add("import", attempts=2)
        await ends.reached.wait()
    ends.opened.set()

    assert [phase.state for phase in (await job.refresh()).phases] == ["completed", "active"]
    async with Worker(tampered_queue, pipeline):
        assert await job.result(timeout=PATIENCE) == 5
    assert runs == [1, 2]


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_timeout_between_two_phases_fails_the_second_and_keeps_the_first(
    tampered_queue: Queue, tampering: Tampering, when: str
):
    door = Door()
    getattr(tampering, when)["update"] = door.pass_through

    async with Worker(tampered_queue, TWO):
        job = await tampered_queue.add("import", timeout=0.05)
        with pytest.raises(JobFailed):
            await job.result(timeout=PATIENCE)
        phases = (await job.refresh()).phases
        door.opened.set()

    assert [(phase.name, phase.state) for phase in phases] == [("download", "completed"), ("process", "failed")]


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("ended_by", ["a timeout", "a shutdown"])
async def test_an_end_that_never_reached_the_store_is_announced_with_the_outcome(
    tampered_queue: Queue, tampering: Tampering, ended_by: str
):
    door = Door()

    async def hold(*_: object) -> None:
        await door.pass_through()
        raise StoreUnavailable(tampered_queue.store.url, "cut off")

    tampering.before["update"] = hold
    async with Worker(tampered_queue, TWO, grace=0):
        job = await tampered_queue.add("import", timeout=0.05 if ended_by == "a timeout" else None)
        if ended_by == "a timeout":
            with pytest.raises(JobFailed):
                await job.result(timeout=PATIENCE)
        else:
            await door.reached.wait()
    door.opened.set()

    assert (await job.refresh()).phases[0].state == "completed"
    assert await phase_events(tampered_queue) == [
        "phase-started download",
        "phase-completed download",
        "phase-started process",
    ]


async def phase_events(queue: Queue) -> list[str]:
    return [
        f"{event.name} {event.data['phase']}"
        async for event in queue.events("start", follow=False)
        if event.name.startswith("phase-")
    ]


async def lost_answers(
    queue: Queue, tampering: Tampering, pipeline: Pipeline, losses: set[int], timeout: float | None
) -> list[str]:
    """The events of a job whose updates are stored, and of which some are not answered: the n-th ones."""
    numbers, cut = count(1), Outage(len(losses))

    def lose(_: object) -> None:
        if next(numbers) in losses:
            cut()

    tampering.after["update"] = lose
    async with Worker(queue, pipeline):
        job = await queue.add("import", timeout=timeout)
        await job.result(timeout=PATIENCE)
    return await phase_events(queue)


@pytest.mark.parametrize("losses", [{1}, {2}, {3}, {1, 2, 3, 4, 5}])
@pytest.mark.parametrize("timeout", [None, PATIENCE], ids=["parked", "in its slot"])
async def test_what_was_stored_and_not_answered_is_announced_once(
    tampered_queue: Queue, tampering: Tampering, losses: set[int], timeout: float | None
):
    async def pause(job: Job, ctx: PhaseContext) -> None:
        # Lets the start of the first phase be sent before its end.
        await tampered_queue.store.clock()

    pipeline = Pipeline([Phase(name, pause) for name in "abc"])

    events = await lost_answers(tampered_queue, tampering, pipeline, losses, timeout)

    assert events == [f"phase-{what} {name}" for name in "abc" for what in ("started", "completed")]


async def test_jobs_that_begin_together_stay_together_in_two_halves(tampered_queue: Queue, tampering: Tampering):
    """Where a store does two calls side by side: it works on one half while the phases of the other run."""
    tampering.offers = Offers(side_by_side_from=4)
    three = Pipeline([Phase(name, nothing) for name in ("download", "process", "upload")])
    jobs = await tampered_queue.add_many(["import"] * 8)

    async with Worker(tampered_queue, three, concurrency=8):
        for job in jobs:
            await job.result(timeout=PATIENCE)

    loads = [len(updates) for _, updates in tampering.given_to("update")]
    # Nobody takes the places of the half that ends first: then the other is all that there is, and is divided.
    assert (loads[:3], max(loads), sum(loads)) == ([4, 4, 4], 4, 16)


async def test_an_update_does_not_wait_for_outcomes_that_left_with_it(tampered_queue: Queue, tampering: Tampering):
    first, second, settling = Door(), Door(), Door()
    doors = iter([first, second])

    async def hold(*_: object) -> None:
        if (door := next(doors, None)) is not None:
            await door.pass_through()

    tampering.before["update"] = hold
    tampering.before["settle"] = settling.pass_through
    may_end = {id: asyncio.Event() for id in ("a", "b", "c", "d")}
    began = {id: asyncio.Event() for id in may_end}

    async def download(job: Job, ctx: PhaseContext) -> None:
        await may_end[job.id].wait()

    async def process(job: Job, ctx: PhaseContext) -> None:
        began[job.id].set()

    async def send(job: Job) -> None:
        await may_end[job.id].wait()

    pipeline = Pipeline([Phase("download", download), Phase("process", process)])
    requests: list[JobRequest] = [("import", None, {"id": id}) for id in "abc"]
    jobs = await tampered_queue.add_many([*requests, ("send", None, {"id": "d"})])
    tampering.offers = Offers(side_by_side_from=100)
    async with Worker(tampered_queue, {"import": pipeline, "send": send}, concurrency=4):
        # The starts of the first phases, and then an end: both trips are under way, and the rest gathers.
        await first.reached.wait()
        may_end["a"].set()
        first.opened.set()
        await second.reached.wait()
        may_end["b"].set()
        may_end["c"].set()
        may_end["d"].set()
        second.opened.set()
        await settling.reached.wait()
        for id in "abc":
            await asyncio.wait_for(began[id].wait(), PATIENCE)
        settling.opened.set()
        for job in jobs:
            await job.result(timeout=PATIENCE)


async def test_a_cancel_that_a_phase_asked_for_itself_hits_its_own_job(queue: Queue):
    async def cancel(job: Job, ctx: PhaseContext) -> None:
        if job.data == "cancel" and (task := asyncio.current_task()) is not None:
            task.cancel()

    async with Worker(queue, Pipeline([Phase("a", cancel), Phase("b", nothing)]), concurrency=1):
        cancelled, other = await queue.add_many([("import", "cancel"), ("import", "go on")])
        with pytest.raises(JobFailed, match="CancelledError"):
            await cancelled.result(timeout=PATIENCE)
        await other.result(timeout=PATIENCE)
