"""Adds that happen at the same time share trips to the store, and nobody notices."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from ropeway import DuplicateJob, JobHandle, Queue, connect
from ropeway.client.adds import JOBS_PER_TRIP
from ropeway.errors import StoreFull, StoreUnavailable
from ropeway.job.record import NewJob
from tests.patience import PATIENCE

from .tampering import Door, Outage, Tampering, tampered


@pytest.fixture
def queue(tampered_queue: Queue, tampering: Tampering) -> Queue:
    # A trip takes time: the memory store often answers before anybody else can run.
    tampering.before["add"] = lambda *_: asyncio.sleep(0)
    return tampered_queue


async def gathered(queue: Queue, tampering: Tampering, count: int) -> list[asyncio.Task[Any]]:
    """One add on its way, held up, and others that wait for it to return."""
    door = Door()
    tampering.before["add"] = door.pass_through
    tasks = [asyncio.create_task(queue.add("send", number)) for number in range(count)]
    await door.reached.wait()
    door.opened.set()
    return tasks


@pytest.mark.every_store
async def test_a_hundred_adds_at_once_take_two_trips(queue: Queue, tampering: Tampering):
    jobs = await asyncio.gather(*(queue.add("send", number) for number in range(100)))
    assert tampering.calls["add"] == 2
    waiting = {job.id: job.data for job in (await queue.find("waiting")).jobs}
    assert [waiting[job.id] for job in jobs] == list(range(100))


async def test_the_next_trip_leaves_while_one_is_under_way_and_then_they_gather(queue: Queue, tampering: Tampering):
    door = Door()
    tampering.before["add"] = door.pass_through
    tasks = [asyncio.create_task(queue.add("send", number)) for number in range(10)]
    await door.reached.wait()
    await asyncio.sleep(0)
    tasks += [asyncio.create_task(queue.add("send", number)) for number in range(10, 30)]
    await asyncio.sleep(0)
    door.opened.set()
    await asyncio.gather(*tasks)

    assert [len(bundles) for (bundles,) in tampering.given_to("add")] == [1, 9, 20]


async def test_adds_one_after_the_other_take_a_trip_each(queue: Queue, tampering: Tampering):
    for number in range(3):
        await queue.add("send", number)
    assert tampering.calls["add"] == 3


async def test_a_trip_carries_a_bounded_number_of_jobs_and_no_bundle_is_split(queue: Queue, tampering: Tampering):
    bundle = [("send", None)] * 400
    await asyncio.gather(*(queue.add_many(bundle) for _ in range(6)))
    trips = [[len(bundle) for bundle in bundles] for (bundles,) in tampering.given_to("add")]
    assert trips == [[400], [400, 400], [400, 400], [400]]
    assert all(sum(trip) <= JOBS_PER_TRIP for trip in trips)


async def test_a_bundle_larger_than_a_trip_travels_alone(queue: Queue, tampering: Tampering):
    await asyncio.gather(queue.add("send"), queue.add_many([("send", None)] * (JOBS_PER_TRIP + 1)), queue.add("send"))
    assert (await queue.counts())["waiting"] == JOBS_PER_TRIP + 3


@pytest.mark.every_store
async def test_one_conflict_hurts_none_of_those_that_travel_with_it(queue: Queue):
    await queue.add("send", 0, id="taken")
    answers = await asyncio.gather(
        queue.add("send", 1), queue.add("send", 2, id="taken"), queue.add("send", 3), return_exceptions=True
    )
    assert [isinstance(answer, DuplicateJob) for answer in answers] == [False, True, False]
    assert (await queue.counts())["waiting"] == 3


async def test_a_trip_that_fails_fails_every_add_in_it_and_none_after_it(queue: Queue, tampering: Tampering):
    tasks = await gathered(queue, tampering, 4)
    tampering.before["add"] = Outage(1, StoreFull("test://", "no space"))
    first, *others = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(first, JobHandle)
    assert all(isinstance(error, StoreFull) and error.store == "test://" for error in others)
    assert len({id(error) for error in others}) == 3, "each has an error of its own"
    assert (await queue.add("send", "later")).created
    assert (await queue.counts())["waiting"] == 2


async def test_an_add_whose_own_trip_fails_hurts_none_that_wait(queue: Queue, tampering: Tampering):
    async def lose_the_first(bundles: Sequence[Sequence[NewJob]]) -> None:
        if bundles[0][0].data == "0":
            raise StoreUnavailable("test://", "gone")

    tampering.before["add"] = lose_the_first
    first, *others = await asyncio.gather(*(queue.add("send", number) for number in range(3)), return_exceptions=True)
    assert isinstance(first, StoreUnavailable)
    assert all(isinstance(job, JobHandle) for job in others)
    assert (await queue.counts())["waiting"] == 2


@pytest.mark.every_store
async def test_an_add_whose_answer_was_lost_is_repeated_and_stores_one_job(queue: Queue, tampering: Tampering):
    tampering.after["add"] = Outage(1)
    job = await queue.add("send")
    assert job.created
    assert tampering.calls["add"] == 2
    assert (await queue.counts())["waiting"] == 1


async def test_a_thread_with_a_loop_of_its_own_adds_while_another_add_is_under_way(queue: Queue, tampering: Tampering):
    door = Door()
    tampering.before["add"] = door.pass_through
    first = asyncio.create_task(queue.add("send", 1))
    await door.reached.wait()
    del tampering.before["add"]
    elsewhere = await asyncio.to_thread(lambda: asyncio.run(queue.add("send", 2)))
    door.opened.set()
    assert elsewhere.created
    assert (await first).created


async def test_a_cancelled_add_hurts_none_that_travel_with_it(queue: Queue, tampering: Tampering):
    tasks = await gathered(queue, tampering, 4)
    tasks[2].cancel()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(answers.pop(2), asyncio.CancelledError)
    assert all(isinstance(job, JobHandle) for job in answers)


async def test_a_cancelled_trip_lets_the_next_one_go(queue: Queue, tampering: Tampering):
    door = Door()
    tampering.before["add"] = door.pass_through
    first = asyncio.create_task(queue.add("send", 1))
    second = asyncio.create_task(queue.add("send", 2))
    await door.reached.wait()
    first.cancel()
    door.opened.set()
    assert (await second).created
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_an_add_that_is_cancelled_before_it_left_is_not_stored(queue: Queue, tampering: Tampering):
    door = Door()
    tampering.before["add"] = door.pass_through
    tasks = [asyncio.create_task(queue.add("send", number)) for number in range(3)]
    await door.reached.wait()
    tasks[1].cancel()
    door.opened.set()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert {job.data for job in (await queue.find("waiting")).jobs} == {0, 2}


@pytest.mark.every_store
def test_a_loop_that_ends_in_the_middle_of_adds_leaves_the_queue_usable_in_another():
    tampering = Tampering()
    store = connect("memory://")
    queue = Queue("letters", store=tampered(store, tampering))

    async def end_in_the_middle() -> None:
        door = Door()
        tampering.before["add"] = door.pass_through
        adds = [asyncio.create_task(queue.add("send", number)) for number in range(3)]
        await door.reached.wait()
        assert not any(task.done() for task in adds)

    async def add_and_count() -> int:
        await queue.add("send")
        counts = await queue.counts()
        await store.close()
        return counts["waiting"]

    asyncio.run(end_in_the_middle())
    tampering.before.clear()
    assert asyncio.run(asyncio.wait_for(add_and_count(), PATIENCE)) == 1
