"""What happens in its queues, heard by a worker's listeners."""

from __future__ import annotations

import asyncio

import pytest

from ropeway import Job, Queue, Worker, WorkerEvent
from ropeway.worker.follower import Follower
from ropeway.worker.listeners import OF_QUEUES
from tests.client.fixtures import MakeQueue
from tests.client.tampering import Door, Outage, Tampering
from tests.patience import PATIENCE

from .watching import Ear, Gate, entered


async def fine(job: Job) -> str:
    return "fine"


@pytest.mark.every_store
async def test_what_happens_in_a_queue_is_heard_whoever_brings_it_about(queue: Queue):
    worker = Worker(queue, {"mine": fine})
    ear = Ear(worker, *OF_QUEUES)
    async with worker:
        await queue.pause("theirs")
        await queue.add("theirs", 1, id="a")
        await queue.add("theirs", 1, id="a")
        await queue.change("a", priority=3)
        await queue.cancel("a")
        await queue.clean(0, "cancelled")
        await queue.resume("theirs")
        await ear.hear("resumed")

    told = [(event.name, event.data) for event in ear.events]
    here = {"queue": queue.name}
    assert told == [
        ("paused", {"name": "theirs", **here}),
        ("added", {"name": "theirs", "job_id": "a", **here}),
        ("duplicated", {"job_id": "a", **here}),
        ("changed", {"priority": 3, "job_id": "a", **here}),
        ("drained", here),
        ("removed", {"prev": "cancelled", "job_id": "a", **here}),
        ("cleaned", {"count": 1, "state": "cancelled", **here}),
        ("resumed", {"name": "theirs", **here}),
    ]
    assert all(event.job is None for event in ear.events)


@pytest.mark.every_store
async def test_what_happened_before_the_worker_started_is_not_heard(queue: Queue):
    await queue.pause()
    worker = Worker(queue, fine)
    ear = Ear(worker, "paused", "resumed")
    async with worker:
        await queue.resume()
        await ear.hear("resumed")
    assert ear.names == ["resumed"]


@pytest.mark.every_store
async def test_a_queue_that_is_emptied_last_of_all_is_heard_of(queue: Queue):
    gate = Gate()
    worker = Worker(queue, gate)
    ear = Ear(worker, "drained")
    async with worker:
        await queue.add("send")
        await entered(gate.entered)
        worker.stop()
        gate.opened.set()
    assert ear.names == ["drained"]


async def test_every_queue_of_a_worker_is_followed(make_queue: MakeQueue):
    one, other = make_queue("one"), make_queue("other")
    worker = Worker([one, other], fine)
    ear = Ear(worker, "paused")
    async with worker:
        await one.pause()
        await ear.hear("paused")
        await other.pause()
        await ear.hear("paused", 2)
    assert [event.data for event in ear.events] == [{"queue": "one"}, {"queue": "other"}]


async def test_a_listener_may_come_while_the_worker_runs(tampered_queue: Queue, tampering: Tampering):
    worker = Worker(tampered_queue, fine)
    async with worker:
        begun = tampering.answered("events")
        ear = Ear(worker, "paused")
        await asyncio.wait_for(begun, PATIENCE)
        await tampered_queue.pause()
        await ear.hear("paused")


async def test_nobody_reads_events_that_nobody_listens_to(tampered_queue: Queue, tampering: Tampering):
    worker = Worker(tampered_queue, fine)
    ear = Ear(worker, "completed")
    async with worker:
        await tampered_queue.add("send")
        await ear.hear("completed")
    assert tampering.calls["events"] == 0


@pytest.mark.every_store
async def test_a_store_that_is_away_for_a_while_hides_nothing(tampered_queue: Queue, tampering: Tampering):
    worker = Worker(tampered_queue, fine)
    ear = Ear(worker, "paused", "resumed")
    async with worker:
        tampering.before["events"] = outage = Outage(2)
        await tampered_queue.pause()
        await outage.hit()
        await tampered_queue.resume()
        await ear.hear("resumed")
    assert ear.names == ["paused", "resumed"]


async def test_a_listener_that_raises_is_heard_as_an_error_and_the_rest_goes_on(queue: Queue):
    worker = Worker(queue, fine)
    ear = Ear(worker, "error", "resumed")

    @worker.on("paused")
    def fail(_: WorkerEvent) -> None:
        raise RuntimeError("listener")

    async with worker:
        await queue.pause()
        error = await ear.hear("error")
        await queue.resume()
        await ear.hear("resumed")
    assert error.data["event"] == "paused"
    assert ear.names == ["error", "resumed"]


async def test_a_follower_that_fails_at_the_end_keeps_no_worker_from_it(queue: Queue, monkeypatch: pytest.MonkeyPatch):
    async def fail(_: Follower) -> None:
        raise ValueError("nobody knows such an event")

    monkeypatch.setattr(Follower, "catch_up", fail)
    worker = Worker(queue, fine)
    worker.on("drained", lambda _: None)
    async with worker:
        assert [info.id for info in await queue.workers()] == [worker.id]
    assert await queue.workers() == []


async def test_a_follower_that_fails_takes_no_time_from_handlers(
    queue: Queue, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    gate = Gate()

    async def fail(_: Follower) -> None:
        await gate.holds(1)
        raise ValueError("nobody knows such an event")

    monkeypatch.setattr(Follower, "step", fail)
    worker = Worker(queue, gate)
    worker.on("drained", lambda _: None)
    job = await queue.add("send")
    running = asyncio.create_task(worker.run())
    while "cannot go on" not in caplog.text:  # noqa: ASYNC110 - by a log that tells nobody
        await asyncio.sleep(0.001)
    gate.opened.set()
    with pytest.raises(ValueError, match="such an event"):
        await asyncio.wait_for(running, PATIENCE)
    assert await job.state() == "completed"


async def test_a_worker_that_is_stopped_while_it_starts_listens_no_more(
    tampered_queue: Queue, tampering: Tampering, monkeypatch: pytest.MonkeyPatch
):
    closed: list[Follower] = []
    close = Follower.close

    def note(follower: Follower) -> None:
        closed.append(follower)
        close(follower)

    monkeypatch.setattr(Follower, "close", note)
    door = Door()
    tampering.before["events"] = door.pass_through
    worker = Worker(tampered_queue, fine)
    worker.on("drained", lambda _: None)
    running = asyncio.create_task(worker.run())
    await asyncio.wait_for(door.reached.wait(), PATIENCE)
    worker.stop()
    await asyncio.wait_for(running, PATIENCE)
    assert len(closed) == 1
