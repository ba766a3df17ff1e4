"""Failure domains: parts of a worker's stores that can be away while others are there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from ropeway import Job, Queue, Worker
from ropeway.errors import StoreCorrupt
from ropeway.store.contract import Store
from ropeway.testing.conformance.fixtures import NewHandle
from ropeway.worker.domains import domains_of
from tests.client.fixtures import MakeQueue
from tests.client.tampering import Door, Outage, Tampering, tampered
from tests.patience import PATIENCE

from .watching import Counting, Gate, entered, told


@pytest.fixture
async def other_handle(new_handle: NewHandle) -> AsyncIterator[Store]:
    handle = new_handle()
    yield handle
    await handle.close()


@pytest.fixture
def stuck(make_queue: MakeQueue, store: Store, tampering: Tampering) -> Queue:
    """A queue of another domain, whose calls a test can hold up."""
    return make_queue("stuck", tampered(store, tampering, url="another://store"))


@pytest.fixture
def fine(make_queue: MakeQueue, other_handle: Store) -> Queue:
    return make_queue("fine", other_handle)


@pytest.mark.every_store
async def test_a_claim_that_is_not_answered_leaves_the_only_place_to_others(
    stuck: Queue, fine: Queue, tampering: Tampering
):
    door, handler = Door(), Counting()
    tampering.before["claim"] = door.pass_through
    late = await stuck.add("send", "late")
    async with Worker([stuck, fine], handler, concurrency=1):
        await entered(door.reached)
        for n in range(3):
            assert await (await fine.add("send", n)).result(timeout=PATIENCE) == n
        door.opened.set()
        assert await late.result(timeout=PATIENCE) == "late"
    assert handler.runs == {0: 1, 1: 1, 2: 1, "late": 1}


async def test_jobs_that_come_when_their_places_are_taken_go_back(stuck: Queue, fine: Queue, tampering: Tampering):
    door, gate, handler = Door(), Gate(), Counting()
    tampering.before["claim"] = door.pass_through
    late = await stuck.add("send", "late")
    async with Worker([stuck, fine], {"send": handler, "hold": gate}, concurrency=1):
        await entered(door.reached)
        held = await fine.add("hold")
        await gate.holds(1)
        handed_back = tampering.answered("settle")
        door.opened.set()
        await asyncio.wait_for(handed_back, PATIENCE)
        assert (await late.refresh()).state == "waiting"
        gate.opened.set()
        assert await held.result(timeout=PATIENCE) == "done"
        assert await late.result(timeout=PATIENCE) == "late"
    assert handler.runs == {"late": 1}


async def test_domains_take_turns_where_there_is_one_place(stuck: Queue, fine: Queue):
    served: list[str] = []

    async def handle(job: Job) -> None:
        served.append(job.queue.name)

    for queue in (stuck, fine):
        await queue.add_many(["send"] * 20)
    async with Worker([stuck, fine], handle, concurrency=1):
        for queue in (stuck, fine):
            await told(queue, "completed", count=20)
    assert 5 <= served[:20].count("fine") <= 15


@pytest.mark.parametrize("verb", ["open", "revoked", "remember"])
async def test_a_worker_starts_without_a_domain_that_does_not_answer_and_takes_it_up_later(
    stuck: Queue, fine: Queue, tampering: Tampering, verb: str
):
    reached, opened = asyncio.Event(), asyncio.Event()
    here = asyncio.get_running_loop()

    async def hold_up(*_: object) -> None:
        # On whatever loop: some of these calls come from the keeper's.
        here.call_soon_threadsafe(reached.set)
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(opened.wait(), here))

    tampering.before[verb] = hold_up
    late = await stuck.add("send", "late")
    async with Worker([stuck, fine], Counting()):
        await entered(reached)
        assert await (await fine.add("send", 1)).result(timeout=PATIENCE) == 1
        assert (await late.refresh()).state == "waiting"
        opened.set()
        assert await late.result(timeout=PATIENCE) == "late"


async def test_a_worker_ends_while_a_domain_does_not_answer(stuck: Queue, fine: Queue, tampering: Tampering):
    door = Door()
    tampering.before["open"] = door.pass_through
    async with Worker([stuck, fine], Counting()):
        assert await (await fine.add("send", 1)).result(timeout=PATIENCE) == 1
    assert door.reached.is_set()


async def test_a_domain_that_must_not_be_used_ends_a_worker_that_has_started(
    stuck: Queue, fine: Queue, tampering: Tampering
):
    door = Door()
    tampering.before["open"] = door.pass_through
    worker = Worker([stuck, fine], Counting())
    running = asyncio.create_task(worker.run())
    await entered(door.reached)
    assert await (await fine.add("send", 1)).result(timeout=PATIENCE) == 1
    tampering.before["revoked"] = Outage(1, StoreCorrupt("test://", "on purpose"))
    door.opened.set()
    with pytest.raises(StoreCorrupt):
        await asyncio.wait_for(running, PATIENCE)


def test_queues_of_one_store_are_one_domain_unless_it_says_otherwise():
    store = Queue("letters", "memory://shared").store
    queues = [Queue("a", store=store), Queue("b", store=store)]

    [whole] = domains_of(queues)
    assert (whole.name, whole.queues, [*whole.stores.values()]) == (store.url, queues, [store])

    parted = tampered(store, Tampering())
    parted.domain_of = lambda queue=None: f"node of {queue}" if queue else store.url  # type: ignore[method-assign]
    queues = [Queue("a", store=parted), Queue("b", store=parted)]
    names = {
        domain.name: ([queue.name for queue in domain.queues], len(domain.stores)) for domain in domains_of(queues)
    }
    assert names == {"node of a": (["a"], 0), "node of b": (["b"], 0), store.url: ([], 1)}
