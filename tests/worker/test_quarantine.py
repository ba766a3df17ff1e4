"""A job that may not stall again runs alone, so that it can be blamed, and only it."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from ropeway import Job, JobCancelled, JobHandle, Phase, PhaseContext, Pipeline, Queue, Worker, in_process
from ropeway.job.ids import new_token
from ropeway.store.commands import Claim
from ropeway.store.values import StallRules, Ticked
from ropeway.testing import FakeClock, FakeStore
from ropeway.worker import quarantine
from tests.client.fixtures import MakeQueue
from tests.client.tampering import Door, Tampering
from tests.patience import PATIENCE
from tests.scenarios.harness import until

from . import process_handlers
from .watching import Ear, Gate, ThreadGate, entered, told

RULES = StallRules()


async def suspects(queue: Queue, count: int = 1, **options: Any) -> list[JobHandle]:
    """Jobs that stalled once, as if their worker had died: by default they may not again."""
    jobs = [await queue.add("suspect", number, **options) for number in range(count)]
    request = Claim(queue.name, "host:1:dead", new_token(), count, 0, ("suspect",))
    assert len((await queue.store.claim(request)).jobs) == count
    assert len((await queue.store.tick(queue.name, RULES)).stalled) == count
    return jobs


async def after_its_death(queue: Queue, job: JobHandle, hours: int = 1) -> Ticked:
    """What the queue makes of the job when its worker dies now. A second death needs more hours: no time goes back."""
    active = await job.refresh()
    assert active.state == "active"
    return await queue.store.tick(queue.name, RULES, now=await queue.store.clock() + hours * 3_600_000)


async def test_it_waits_for_its_neighbours_to_end_and_nobody_starts_beside_it(queue: Queue):
    alone, plain = Gate(), Gate()
    [suspect] = await suspects(queue)
    await queue.add_many([("plain", number) for number in range(3)])
    async with Worker(queue, {"suspect": alone, "plain": plain}):
        await plain.holds(3)
        later = await queue.add("plain", 4)
        assert not alone.running
        plain.opened.set()
        await alone.holds(1)
        assert (await later.state(), plain.running) == ("waiting", [])
        alone.opened.set()
        assert await later.result(timeout=PATIENCE) == "done"
    assert await suspect.state() == "completed"


@pytest.mark.every_store
async def test_it_is_blamed_if_it_stalls_while_it_is_alone(queue: Queue):
    alone = Gate()
    [suspect] = await suspects(queue)
    async with Worker(queue, {"suspect": alone}):
        await alone.holds(1)
        assert (await after_its_death(queue, suspect)).given_up == [suspect.id]
        alone.opened.set()


async def test_it_is_not_blamed_while_it_waits(queue: Queue):
    plain = Gate()
    [suspect] = await suspects(queue)
    await queue.add("plain")
    async with Worker(queue, {"suspect": plain, "plain": plain}):
        await plain.holds(1)
        assert suspect.id in (await after_its_death(queue, suspect)).stalled
        plain.opened.set()


async def test_a_job_that_may_stall_again_runs_beside_others(queue: Queue):
    gate = Gate()
    await suspects(queue)
    await queue.add("plain")
    async with Worker(queue, gate, max_stalled_count=2):
        await gate.holds(2)
        gate.opened.set()


@pytest.mark.every_store
async def test_a_stall_that_would_use_the_last_attempt_makes_a_suspect_too(queue: Queue):
    gate = Gate()
    await suspects(queue, attempts=1)
    await queue.add("plain")
    options: Any = {"max_stalled_count": 9, "stall_counts_as_attempt": True}
    async with Worker(queue, {"suspect": gate, "plain": gate}, **options):
        await gate.holds(1)
        assert gate.running == [None]
        gate.opened.set()
    assert gate.most == 1


async def test_many_of_them_run_one_after_the_other(queue: Queue):
    gate = Gate()
    gate.opened.set()
    jobs = await suspects(queue, 5)
    async with Worker(queue, gate):
        for job in jobs:
            assert await job.result(timeout=PATIENCE) == "done"
    assert gate.most == 1
    # All came with one claim, and the worker kept one of them; then it was careful.
    assert [(await job.refresh()).attempts_started for job in jobs] == [2, 3, 3, 3, 3]


async def test_other_workers_of_the_process_stand_back(make_queue: MakeQueue):
    queue, other = make_queue(), make_queue("others")
    alone, plain = Gate(), Gate()
    [suspect] = await suspects(queue)
    await other.add("plain")
    async with Worker(other, plain):
        await plain.holds(1)
        async with Worker(queue, alone):
            await told(queue, "active", suspect, count=2)
            assert not alone.running
            plain.opened.set()
            await alone.holds(1)
            later = await other.add("plain")
            assert (await later.state(), plain.running) == ("waiting", [])
            alone.opened.set()
            await later.result(timeout=PATIENCE)


async def test_suspects_of_two_workers_of_a_process_take_turns(queue: Queue):
    gate = Gate()
    gate.opened.set()
    jobs = await suspects(queue, 6)
    async with Worker(queue, gate), Worker(queue, gate):
        for job in jobs:
            assert await job.result(timeout=PATIENCE) == "done"
    assert gate.most == 1


async def test_workers_of_other_threads_stand_back_too(queue: Queue):
    """Each with a loop of its own, as in a program without asyncio."""
    gate, plain = Gate(), ThreadGate()
    other = Queue("others", store=queue.store.sibling())
    [suspect] = await suspects(queue)
    elsewhere = asyncio.Event()
    here = asyncio.get_running_loop()

    async def work() -> None:
        async with Worker(other, plain) as worker:
            here.call_soon_threadsafe(elsewhere.set)
            await asyncio.to_thread(over.wait)
            worker.stop()
        await other.store.close()

    over = threading.Event()
    running = asyncio.create_task(asyncio.to_thread(asyncio.run, work()))
    await entered(elsewhere)
    await Queue("others", store=queue.store).add("plain")
    await plain.enter()
    async with Worker(queue, gate):
        await told(queue, "active", suspect, count=2)
        assert not gate.running
        plain.opened.set()
        await gate.holds(1)
        gate.opened.set()
        await suspect.result(timeout=PATIENCE)
    over.set()
    await running


async def test_a_worker_claims_as_before_once_there_is_none(queue: Queue):
    alone, plain = Gate(), Gate()
    await suspects(queue)
    async with Worker(queue, {"suspect": alone, "plain": plain}, concurrency=4):
        await alone.holds(1)
        await queue.add_many([("plain", number) for number in range(4)])
        alone.opened.set()
        await plain.holds(4)
        plain.opened.set()


async def test_ends_of_jobs_are_watched_only_while_there_is_one(queue: Queue):
    """Each plain job would pay for it."""
    gate = Gate()
    worker = Worker(queue, gate)
    [suspect] = await suspects(queue)
    async with worker:
        await gate.holds(1)
        assert worker._runtime is not None
        slots = worker._runtime.slots
        assert slots.on_job_ended is not None
        gate.opened.set()
        await suspect.result(timeout=PATIENCE)
        later = await queue.add("plain")
        await later.result(timeout=PATIENCE)
        assert slots.on_job_ended is None


async def test_handlers_in_processes_are_no_neighbours(queue: Queue):
    alone = Gate()
    handlers: Any = {"suspect": alone, "process": in_process(process_handlers.hang)}
    worker = Worker(queue, handlers)
    ear = Ear(worker, "progress")
    async with worker:
        beside = await queue.add("process")
        await ear.hear("progress")
        worker.pause()
        [suspect] = await suspects(queue)
        worker.resume()
        await alone.holds(1)
        assert await beside.state() == "active"
        alone.opened.set()
        await suspect.result(timeout=PATIENCE)
        await beside.cancel()


@pytest.mark.every_store
async def test_its_mark_stays_until_its_outcome_is_stored(tampered_queue: Queue, tampering: Tampering):
    queue = tampered_queue
    [suspect] = await suspects(queue)
    plain = Gate()

    async def fine(_: Job) -> None:
        await queue.add("plain")

    door = Door()
    tampering.before["settle"] = door.pass_through
    async with Worker(queue, {"suspect": fine, "plain": plain}):
        await entered(door.reached)
        assert not plain.running
        door.opened.set()
        await plain.holds(1)
        plain.opened.set()
    assert await suspect.state() == "completed"


async def test_a_shutdown_hands_it_back_while_it_waits(queue: Queue):
    plain = Gate()
    [suspect] = await suspects(queue)
    await queue.add("plain")
    worker = Worker(queue, {"suspect": plain, "plain": plain})
    async with worker:
        await plain.holds(1)
        worker.stop()
        await asyncio.wait_for(_handed_back(suspect), PATIENCE)
        plain.opened.set()
    assert plain.runs == 1


@pytest.mark.every_store
async def test_it_can_be_cancelled_while_it_waits(queue: Queue):
    plain = Gate()
    [suspect] = await suspects(queue)
    await queue.add("plain")
    worker = Worker(queue, {"suspect": plain, "plain": plain}, cancel_grace=0.05)
    ear = Ear(worker, "cancelled")
    async with worker:
        await plain.holds(1)
        await suspect.cancel()
        await ear.hear("cancelled")
        with pytest.raises(JobCancelled):
            await suspect.result(timeout=PATIENCE)
        later = await queue.add("plain")
        await plain.holds(2)
        plain.opened.set()
        await later.result(timeout=PATIENCE)


class TestPatience:
    """Sixty seconds, by a fake clock."""

    @pytest.fixture
    def clock(self) -> FakeClock:
        return FakeClock()

    @pytest.fixture
    def queue(self, clock: FakeClock) -> Queue:
        return Queue("letters", store=FakeStore(clock))

    async def test_it_does_not_wait_for_ever_and_is_not_blamed_then(self, queue: Queue, clock: FakeClock):
        gate = Gate()
        [suspect] = await suspects(queue)
        await queue.add("plain")
        async with Worker(queue, {"suspect": gate, "plain": gate}):
            await gate.holds(1)
            await clock.advance(0.9 * quarantine.PATIENCE)
            assert len(gate.running) == 1
            await clock.advance(0.2 * quarantine.PATIENCE)
            await gate.holds(2)
            assert suspect.id in (await after_its_death(queue, suspect)).stalled
            gate.opened.set()

    async def test_others_do_not_wait_for_ever_and_it_is_not_blamed_then(self, queue: Queue, clock: FakeClock):
        gate = Gate()
        [suspect] = await suspects(queue)
        async with Worker(queue, {"suspect": gate, "plain": gate}):
            await gate.holds(1)
            await queue.add("plain")
            await clock.advance(0.9 * quarantine.PATIENCE)
            assert len(gate.running) == 1
            await clock.advance(0.2 * quarantine.PATIENCE)
            await gate.holds(2)
            assert suspect.id in (await after_its_death(queue, suspect)).stalled
            gate.opened.set()

    async def test_it_doubles_with_each_stall_beyond(self, queue: Queue, clock: FakeClock):
        gate = Gate()
        await suspects(queue)
        request = Claim(queue.name, "host:1:dead", new_token(), 1, 0, isolates=True)
        await queue.store.claim(request)
        await queue.store.tick(queue.name, RULES)
        await queue.add("plain")
        async with Worker(queue, {"suspect": gate, "plain": gate}):
            await gate.holds(1)
            await clock.advance(1.9 * quarantine.PATIENCE)
            assert len(gate.running) == 1
            await clock.advance(0.2 * quarantine.PATIENCE)
            await gate.holds(2)
            gate.opened.set()


async def _handed_back(job: JobHandle) -> None:
    async for event in job.queue.events("start"):
        if event.job_id == job.id and event.name == "waiting" and event.data == {}:
            return


@pytest.mark.every_store
@pytest.mark.parametrize("kind", ["step", "phase"])
async def test_stalls_count_until_a_job_comes_further(queue: Queue, kind: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(quarantine, "PATIENCE", PATIENCE)
    [suspect] = await suspects(queue)
    waiting: list[int] = []
    is_dead = asyncio.Event()

    async def one_more_step(job: Job) -> None:
        await job.step("one", dict)
        await wait(job)

    async def wait(job: Job, _: PhaseContext | None = None) -> None:
        waiting.append(job.record.attempts_started)
        await is_dead.wait()
        is_dead.clear()

    async def end(job: Job, _: PhaseContext) -> None: ...

    handler: Any = one_more_step if kind == "step" else Pipeline([Phase("one", end), Phase("two", wait)])
    async with Worker(queue, {"suspect": handler}, grace=0):
        await until(lambda: waiting == [2], "one more step")
        assert (await suspect.refresh()).stalled_count == 0
        assert (await after_its_death(queue, suspect)).stalled == [suspect.id]
        is_dead.set()

        await until(lambda: waiting == [2, 3], "an attempt without a further step")
        assert (await suspect.refresh()).stalled_count == 1
        assert (await after_its_death(queue, suspect, hours=2)).given_up == [suspect.id]
