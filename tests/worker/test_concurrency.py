"""How many jobs run at once, in which order, and whose turn it is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from ropeway import Job, Queue, Worker
from ropeway.errors import InvalidOption
from ropeway.store.contract import Store
from ropeway.store.offers import Offers
from tests.client.fixtures import MakeQueue
from tests.client.tampering import Door, Tampering, tampered
from tests.patience import PATIENCE

from .watching import Ear, Gate, entered, told


@pytest.fixture
async def other_handle(store: Store) -> AsyncIterator[Store]:
    """As of a queue that was made with the same URL."""
    handle = store.sibling()
    yield handle
    await handle.close()


async def finish_all(queue: Queue, count: int) -> None:
    await told(queue, "completed", count=count)


@pytest.mark.parametrize("concurrency", [1, 3, 7])
async def test_no_more_handlers_run_than_the_concurrency(queue: Queue, concurrency: int):
    running = most = 0

    async def handle(_: Job) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.001)
        running -= 1

    await queue.add_many(["send"] * 60)
    async with Worker(queue, handle, concurrency=concurrency):
        await finish_all(queue, 60)
    # That all slots are used is another test's promise: here the first job may end before the last slot begins.
    assert 0 < most <= concurrency


async def test_every_slot_is_used(queue: Queue):
    gate = Gate()
    await queue.add_many(("send", n) for n in range(30))
    async with Worker(queue, gate, concurrency=20) as worker:
        await gate.holds(20)
        assert len(worker.running) == 20
        assert await queue.counts() == {**(await queue.counts()), "active": 20, "waiting": 10}
        gate.opened.set()
        await finish_all(queue, 30)
    assert gate.most == 20


async def test_a_worker_claims_no_more_than_it_can_run(queue: Queue):
    gate = Gate()
    await queue.add_many(("send", n) for n in range(5))
    async with Worker(queue, gate, concurrency=2):
        await gate.holds(2)
        assert (await queue.counts())["active"] == 2
        gate.opened.set()
        await finish_all(queue, 5)


async def test_concurrency_can_be_raised_while_jobs_run(queue: Queue):
    gate = Gate()
    await queue.add_many(("send", n) for n in range(6))
    async with Worker(queue, gate, concurrency=2) as worker:
        await gate.holds(2)
        worker.concurrency = 5
        assert worker.concurrency == 5
        await gate.holds(5)
        gate.opened.set()
        await finish_all(queue, 6)
    assert gate.most == 5


async def test_concurrency_can_be_lowered_while_jobs_run(queue: Queue):
    """What runs goes on; no more than the new number is begun."""
    release: dict[int, asyncio.Event] = {n: asyncio.Event() for n in range(8)}
    running: set[int] = set()
    changed = asyncio.Event()
    most_after = 0

    async def handle(job: Job) -> None:
        nonlocal most_after
        running.add(job.data)
        if worker.concurrency == 1:
            most_after = max(most_after, len(running - {0, 1, 2, 3}))
        changed.set()
        await release[job.data].wait()
        running.discard(job.data)

    await queue.add_many(("send", n) for n in range(8))
    async with Worker(queue, handle, concurrency=4) as worker:
        while len(running) < 4:
            changed.clear()
            await asyncio.wait_for(changed.wait(), PATIENCE)
        worker.concurrency = 1
        for event in release.values():
            event.set()
        await finish_all(queue, 8)
    assert most_after == 1


@pytest.mark.every_store
async def test_a_claim_on_its_way_brings_no_more_than_a_concurrency_that_was_lowered_meanwhile(
    tampered_queue: Queue, tampering: Tampering
):
    gate, door = Gate(), Door()
    await tampered_queue.add_many(("send", n) for n in range(20))
    tampering.after["claim"] = door.pass_through
    async with Worker(tampered_queue, gate, concurrency=7) as worker:
        await entered(door.reached)
        worker.concurrency = 2
        door.opened.set()
        await gate.holds(2)
        gate.opened.set()
        await finish_all(tampered_queue, 20)
    assert gate.most == 2
    assert gate.runs == 20


async def test_jobs_that_have_not_begun_are_handed_back_when_the_concurrency_is_lowered(queue: Queue):
    gate = Gate()
    worker = Worker(queue, gate, concurrency=7)
    # It hears of all seven before the first of them begins.
    worker.on("active", lambda _: setattr(worker, "concurrency", 2))
    await queue.add_many(("send", n) for n in range(7))
    async with worker:
        await gate.holds(2)
        gate.opened.set()
        await finish_all(queue, 7)
    assert gate.most == 2


@pytest.mark.every_store
async def test_what_a_claim_on_its_way_brings_to_a_paused_worker_is_handed_back(
    tampered_queue: Queue, tampering: Tampering
):
    gate, door = Gate(), Door()
    job = await tampered_queue.add("send")
    tampering.after["claim"] = door.pass_through
    async with Worker(tampered_queue, gate) as worker:
        await entered(door.reached)
        worker.pause()
        door.opened.set()
        await asyncio.wait_for(worker.idle(), PATIENCE)
        assert ((await job.refresh()).state, gate.runs) == ("waiting", 0)
        worker.resume()
        await gate.holds(1)
        gate.opened.set()
        await job.result(timeout=PATIENCE)


async def test_a_lowered_concurrency_can_be_raised_again(queue: Queue):
    gate = Gate()
    async with Worker(queue, gate, concurrency=5) as worker:
        worker.concurrency = 1
        worker.concurrency = 3
        await queue.add_many(("send", n) for n in range(4))
        await gate.holds(3)
        gate.opened.set()
        await finish_all(queue, 4)
    assert gate.most == 3


@pytest.mark.parametrize("concurrency", [0, -1, 1.5, "5", None, True, float("nan"), 100_001])
def test_a_concurrency_that_cannot_be_meant_is_refused(concurrency: Any):
    queue = Queue("letters", "memory://")
    with pytest.raises(InvalidOption, match="concurrency"):
        Worker(queue, print, concurrency=concurrency)
    worker = Worker(queue, print)
    with pytest.raises(InvalidOption, match="concurrency"):
        worker.concurrency = concurrency
    assert worker.concurrency == 10


@pytest.mark.every_store
async def test_the_global_limit_holds_over_all_workers(queue: Queue, store: Store):
    gate = Gate()
    await queue.add_many(("send", n) for n in range(12))
    async with (
        Worker(queue, gate, concurrency=5, max_global_concurrency=3),
        Worker(Queue(queue.name, store=store), gate, concurrency=5),
    ):
        await gate.holds(3)
        assert (await queue.counts())["active"] == 3
        gate.opened.set()
        await finish_all(queue, 12)
    assert gate.most == 3
    assert (await queue.settings()).max_active == 3


@pytest.mark.every_store
async def test_a_raised_global_limit_is_used_at_once(queue: Queue):
    gate = Gate()
    await queue.add_many(("send", n) for n in range(4))
    async with Worker(queue, gate, max_global_concurrency=1):
        await gate.holds(1)
        await queue.set_global_concurrency(3)
        await gate.holds(3)
        await queue.set_global_concurrency(None)
        await gate.holds(4)
        gate.opened.set()
        await finish_all(queue, 4)


async def test_a_paused_worker_takes_no_more_and_another_does(queue: Queue, store: Store):
    gate = Gate()
    async with Worker(queue, gate, concurrency=1) as worker:
        await queue.add("send", "before")
        await gate.holds(1)
        worker.pause()
        assert worker.paused
        worker.concurrency = 2
        await queue.add("send", "meanwhile")

        async def other(job: Job) -> Any:
            return job.data

        async with Worker(Queue(queue.name, store=store), other):
            assert (await told(queue, "completed")).data == {"result": "meanwhile"}
        assert gate.running == ["before"]
        await queue.add("send", "after")
        worker.resume()
        await gate.holds(2)
        gate.opened.set()
        await finish_all(queue, 3)


async def test_a_worker_may_be_paused_before_it_starts(queue: Queue):
    gate = Gate()
    worker = Worker(queue, gate)
    worker.pause()
    await queue.add("send")
    async with worker:
        assert (await queue.workers())[0].paused
        assert gate.runs == 0
        worker.resume()
        await gate.holds(1)
        gate.opened.set()


@pytest.mark.every_store
async def test_a_paused_queue_is_left_alone_until_it_is_resumed(queue: Queue):
    gate = Gate()
    gate.opened.set()
    await queue.pause()
    await queue.add("send")
    async with Worker(queue, gate):
        await told(queue, "added")
        await queue.resume()
        await finish_all(queue, 1)
    resumed, active = await told(queue, "resumed"), await told(queue, "active")
    assert resumed.at <= active.at


@pytest.mark.every_store
async def test_a_paused_name_is_skipped_until_it_is_resumed(queue: Queue):
    order = []

    async def handle(job: Job) -> None:
        order.append(job.name)

    await queue.pause("send")
    await queue.add_many(["send", "post"])
    async with Worker(queue, handle, concurrency=1):
        await finish_all(queue, 1)
        await queue.resume("send")
        await finish_all(queue, 2)
    assert order == ["post", "send"]


@pytest.mark.every_store
async def test_one_at_a_time_jobs_run_in_the_order_of_the_line(queue: Queue):
    order = []

    async def handle(job: Job) -> None:
        order.append(job.data)

    await queue.add_many(
        [
            ("send", "fifth", {"priority": 5}),
            ("send", "third"),
            ("send", "fourth"),
            ("send", "second", {"lifo": True}),
            ("send", "first", {"priority": -1}),
        ]
    )
    async with Worker(queue, handle, concurrency=1):
        await finish_all(queue, 5)
    assert order == ["first", "second", "third", "fourth", "fifth"]


async def test_one_at_a_time_a_hundred_jobs_run_first_in_first_out(queue: Queue):
    order = []

    async def handle(job: Job) -> None:
        order.append(job.data)

    await queue.add_many(("send", n) for n in range(100))
    async with Worker(queue, handle, concurrency=1):
        await finish_all(queue, 100)
    assert order == list(range(100))


@pytest.mark.every_store
async def test_an_urgent_job_is_next_even_while_others_are_on_their_way(queue: Queue):
    order = []

    async def handle(job: Job) -> None:
        order.append(job.data)
        if job.data == 0:
            await queue.add("send", "urgent", priority=-1)

    await queue.add_many(("send", n) for n in range(3))
    async with Worker(queue, handle, concurrency=1):
        await finish_all(queue, 4)
    assert order == [0, "urgent", 1, 2]


@pytest.mark.every_store
async def test_two_workers_run_each_job_once(queue: Queue, store: Store):
    runs: list[int] = []

    async def handle(job: Job) -> None:
        runs.append(job.data)
        await asyncio.sleep(0)

    async with Worker(queue, handle), Worker(Queue(queue.name, store=store), handle):
        await queue.add_many(("send", n) for n in range(200))
        await finish_all(queue, 200)
    assert sorted(runs) == list(range(200))


async def test_queues_of_one_worker_are_served_in_turn(make_queue: MakeQueue):
    """A queue that is always full starves no other."""
    busy, quiet = make_queue("busy"), make_queue("quiet")
    order = []

    async def handle(job: Job) -> None:
        order.append(job.queue.name)
        await asyncio.sleep(0)

    await busy.add_many(["send"] * 300)
    await quiet.add_many(["send"] * 30)
    async with Worker([busy, quiet], handle, concurrency=2):
        await finish_all(quiet, 30)
        settled_meanwhile = (await busy.counts())["completed"]
    assert order[:20].count("quiet") >= 5
    assert settled_meanwhile <= 150


@pytest.mark.parametrize("verbs", [("claim",), ("claim", "settle")])
async def test_a_store_that_does_not_answer_holds_up_no_queue_of_another(
    make_queue: MakeQueue, store: Store, other_handle: Store, tampering: Tampering, verbs: tuple[str, ...]
):
    elsewhere = tampered(store, tampering, url="another://store")
    stuck, fine = make_queue("stuck", elsewhere), make_queue("fine", other_handle)
    gate, door = Gate(), Door()

    async def handle(job: Job) -> str:
        return await gate(job) if job.queue is stuck else "done"

    await stuck.add_many(["send"] * 2)
    worker = Worker([stuck, fine], handle, concurrency=4, grace=0, lock_duration=0.5)
    async with worker:
        await gate.holds(2)
        tampering.before |= dict.fromkeys(verbs, door.pass_through)
        gate.opened.set()
        # Otherwise nothing but the safety poll would claim there again.
        await stuck.add("send")
        await entered(door.reached)
        for _ in range(5):
            assert await (await fine.add("send")).result(timeout=PATIENCE) == "done"
        door.opened.set()


@pytest.mark.parametrize("url", [None, "another://store"])
@pytest.mark.parametrize("concurrency", [1, 4])
async def test_places_that_one_queue_does_not_fill_are_for_the_other(
    make_queue: MakeQueue,
    store: Store,
    other_handle: Store,
    monkeypatch: pytest.MonkeyPatch,
    concurrency: int,
    url: str | None,
):
    monkeypatch.setattr("ropeway.worker.dispatcher.SAFETY_POLL", 3_600)
    empty, full = make_queue("empty"), make_queue("full", tampered(other_handle, Tampering(), url))
    gate = Gate()
    jobs = await full.add_many(["send"] * 10)
    async with Worker([empty, full], gate, concurrency=concurrency):
        await gate.holds(concurrency)
        gate.opened.set()
        for job in jobs:
            await job.result(timeout=PATIENCE)


async def test_queues_of_one_url_are_served_in_turn(make_queue: MakeQueue, other_handle: Store):
    queues = [make_queue("a"), make_queue("b", other_handle)]
    served: list[str] = []

    async def handle(job: Job) -> None:
        served.append(job.queue.name)

    for queue in queues:
        await queue.add_many(["send"] * 5)
    async with Worker(queues, handle, concurrency=1):
        for queue in queues:
            await finish_all(queue, 5)
    assert "".join(served) == "ab" * 5


@pytest.mark.parametrize("handles", [1, 2])
async def test_what_ended_in_one_queue_is_settled_while_another_is_always_full(
    make_queue: MakeQueue, store: Store, other_handle: Store, handles: int
):
    busy, quiet = make_queue("busy"), make_queue("quiet", store if handles == 1 else other_handle)
    gate = Gate()

    async def keep_busy(job: Job) -> None:
        # One that ends adds the next, so that there is always something to claim.
        await job.queue.add("send")
        await asyncio.sleep(0)

    worker = Worker([busy, quiet], {"send": keep_busy, "post": gate}, concurrency=3)
    job = await quiet.add("post")
    await busy.add_many(["send"] * 10)
    async with worker:
        await gate.holds(1)
        gate.opened.set()
        assert await job.result(timeout=PATIENCE) == "done"
        await busy.pause()


async def test_a_worker_of_several_queues_runs_all_of_them(make_queue: MakeQueue):
    queues = [make_queue(name) for name in ("a", "b", "c")]

    async def handle(job: Job) -> str:
        return job.queue.name

    async with Worker(queues, handle) as worker:
        jobs = [await queue.add("send") for queue in queues]
        assert [await job.result(timeout=PATIENCE) for job in jobs] == ["a", "b", "c"]
        for queue in queues:
            assert [info.id for info in await queue.workers()] == [worker.id]


async def test_queues_of_one_worker_may_have_stores_of_their_own(make_queue: MakeQueue):
    async def handle(job: Job) -> str:
        return job.queue.store.url

    async with Queue("elsewhere", "memory://") as elsewhere:
        here = make_queue()
        async with Worker([here, elsewhere], handle):
            jobs = [await queue.add("send") for queue in (here, elsewhere)]
            urls = [await job.result(timeout=PATIENCE) for job in jobs]
        assert urls == [here.store.url, "memory://"]
        assert await elsewhere.workers() == []


@pytest.mark.parametrize("queues", [[], None, "letters", [None], 5])
def test_a_worker_needs_queues(queues: Any):
    with pytest.raises((InvalidOption, TypeError)):
        Worker(queues, print)


def test_a_queue_cannot_be_given_twice():
    with pytest.raises(InvalidOption, match="twice"):
        Worker([Queue("a", "memory://"), Queue("a", "memory://")], print)


async def test_a_worker_says_who_it_is_and_what_it_does(queue: Queue):
    gate = Gate()
    worker = Worker(queue, {"send": gate}, name="postman", concurrency=7)
    async with worker:
        [info] = await queue.workers()
        assert (info.id, info.name, info.queues, info.handlers, info.concurrency) == (
            worker.id,
            "postman",
            (queue.name,),
            {queue.name: ("send",)},
            7,
        )
        assert worker.info == info
        assert "postman" in repr(worker)
    assert await queue.workers() == []


async def test_an_active_listener_hears_of_each_job(queue: Queue):
    gate = Gate()
    gate.opened.set()
    worker = Worker(queue, gate)
    ear = Ear(worker, "active")
    async with worker:
        job = await queue.add("send")
        event = await ear.hear("active")
        assert event.job is not None
        assert (event.job.id, event.data) == (job.id, {"attempt": 1})
        await job.result(timeout=PATIENCE)


@pytest.mark.every_store
@pytest.mark.parametrize(("side_by_side_from", "trips"), [(10, [5, 5]), (11, [10])])
async def test_outcomes_that_come_together_go_by_two_trips_where_the_store_does_them_side_by_side(
    tampered_queue: Queue, tampering: Tampering, side_by_side_from: int, trips: list[int]
):
    tampering.offers = Offers(side_by_side_from=side_by_side_from)
    gate = Gate()
    await tampered_queue.add_many(["send"] * 10)
    async with Worker(tampered_queue, gate, concurrency=10):
        await gate.holds(10)
        gate.opened.set()
        await finish_all(tampered_queue, 10)
    settled = [len(outcomes) for _, outcomes, *_ in tampering.given_to("settle") if outcomes]
    assert settled == trips
