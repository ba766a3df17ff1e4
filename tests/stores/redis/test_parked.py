"""Claims that are parked on the server: who is given jobs, and what becomes of them when a message is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial

import pytest

from ropeway import Queue, Worker
from ropeway.store import waiting as waiting_claims
from ropeway.store.values import Claimed
from ropeway.store.waiting import WaitingClaim
from ropeway.stores.redis import RedisStore
from ropeway.stores.redis.parked import ParkedClaim
from ropeway.stores.redis.parking import ParkingListener
from ropeway.stores.redis.store import ServerStore
from ropeway.testing.arrange import add, read
from ropeway.testing.conformance.waiting_claims import LONG, begun, waiting_request
from ropeway.testing.factories import QUEUE, WORKER, new_job
from tests.patience import PATIENCE
from tests.worker.watching import Gate, told

from .conftest import OpenStore


async def parked_in(store: RedisStore, queue: str = QUEUE) -> int:
    return int(await store._executor.execute("ZCARD", f"{store._executor.keys.queue(queue)}:parked"))


async def until_parked(store: RedisStore, queue: str = QUEUE, number: int = 1) -> None:
    async with asyncio.timeout(PATIENCE):
        while await parked_in(store, queue) < number:
            pass


async def park(store: RedisStore, limit: int = 10) -> tuple[ParkingListener, asyncio.Task[Claimed]]:
    """A claim that is parked in a queue which is there and empty."""
    await add(store, new_job("first"))
    await store.remove(QUEUE, ["first"])
    listener = store.listen("jobs", [QUEUE], WORKER)
    assert isinstance(listener, ParkingListener)
    waiting = asyncio.create_task(store.claim(waiting_request(limit)))
    await until_parked(store)
    return listener, waiting


def ids_of(claimed: Claimed) -> list[str]:
    return [job.id for job in claimed.jobs]


async def test_a_lone_add_serves_it(store: RedisStore):
    listener, waiting = await park(store)

    await add(store, new_job("a"))

    assert ids_of(await waiting) == ["a"]
    assert await parked_in(store) == 0
    listener.close()


async def test_a_job_that_is_handed_over_is_the_same_as_one_that_was_claimed(store: RedisStore):
    listener, waiting = await park(store)

    await add(store, new_job("a"))

    assert (await waiting).jobs == [await read(store, "a")]
    assert (await store.count(QUEUE))["active"] == 1
    listener.close()


async def test_bundles_serve_it(store: RedisStore):
    listener, waiting = await park(store, limit=2)

    await add(store, *(new_job(f"job-{n}") for n in range(3)))

    assert ids_of(await waiting) == ["job-0", "job-1"]
    assert (await read(store, "job-2")).state == "waiting"
    listener.close()


async def test_the_one_that_is_parked_longest_is_served_first(store: RedisStore, url: str, open_store: OpenStore):
    listener, waiting = await park(store)
    later = asyncio.create_task(open_store(url).claim(waiting_request(token="other", wait=2 * LONG)))
    await until_parked(store, number=2)

    await add(store, new_job("a"))
    assert ids_of(await waiting) == ["a"]
    await add(store, new_job("b"))

    assert ids_of(await later) == ["b"]
    listener.close()


@pytest.mark.parametrize("number", [1, 2])
async def test_one_whose_worker_is_gone_gets_nothing(store: RedisStore, number: int):
    await add(store, new_job("first"))
    await store.remove(QUEUE, ["first"])
    dead = WaitingClaim(waiting_request(token="dead"), lambda: None)
    await ParkedClaim(partial(store._executor.run_packed, QUEUE), dead, "nobody hears this").claim(60)

    await add(store, *(new_job(f"job-{n}") for n in range(number)))

    assert (await store.count(QUEUE))["waiting"] == number
    assert await parked_in(store) == 0


async def test_a_message_that_was_lost_is_made_good_for(store: RedisStore, monkeypatch: pytest.MonkeyPatch):
    listener, waiting = await park(store)
    monkeypatch.setattr(listener, "hear", lambda _channel, _message: None)
    await add(store, new_job("a"))
    assert (await read(store, "a")).state == "active"

    listener.wake()

    assert ids_of(await waiting) == ["a"]
    listener.close()


async def test_a_connection_that_broke_while_it_was_parked_costs_nothing(store: RedisStore):
    listener, waiting = await park(store)

    await store._executor.execute("CLIENT", "KILL", "TYPE", "pubsub")

    # It is woken when the subscription stands again, and looks for itself.
    await add(store, new_job("a"))
    assert ids_of(await waiting) == ["a"]
    listener.close()


async def test_jobs_too_large_for_a_message_come_all_the_same(store: RedisStore):
    listener, waiting = await park(store)

    await add(store, *(new_job(f"job-{n}", data='"' + "x" * 100_000 + '"') for n in range(5)))

    assert ids_of(await waiting) == [f"job-{n}" for n in range(5)]
    listener.close()


async def test_a_cancelled_claim_gives_back_what_it_was_given(store: RedisStore, monkeypatch: pytest.MonkeyPatch):
    listener, waiting = await park(store)
    monkeypatch.setattr(listener, "hear", lambda _channel, _message: None)
    await add(store, new_job("a"))
    entries = store.listen("events", [QUEUE])
    await entries.wait(1)

    waiting.cancel()
    while (await read(store, "a")).state != "waiting":
        await entries.wait(1)

    assert (await read(store, "a")).attempts_made == 0
    listener.close()


async def test_a_claim_can_be_withdrawn_by_another_process(store: RedisStore, monkeypatch: pytest.MonkeyPatch):
    listener, waiting = await park(store)
    monkeypatch.setattr(waiting_claims, "_waiting", {})

    await store.withdraw(waiting_request())

    assert ids_of(await waiting) == []
    assert await parked_in(store) == 0
    listener.close()


async def test_a_claim_that_is_repeated_is_parked_once(store: RedisStore):
    listener, waiting = await park(store)

    again = await begun(store, waiting_request(10, repeat=True))
    assert await parked_in(store) == 1
    await store.withdraw(waiting_request())
    assert ids_of(await again) == []
    # A withdrawal is for the claim that was sent last under its token.
    listener.close()

    assert ids_of(await waiting) == []
    assert await parked_in(store) == 0


async def test_a_worker_that_runs_a_job_leaves_no_claim(store: RedisStore):
    running, done = asyncio.Event(), asyncio.Event()

    async def handler(_: object) -> None:
        running.set()
        await done.wait()

    queue = Queue("mail", store=store)
    async with Worker(queue, handler, concurrency=10):
        await queue.add("send")
        await running.wait()
        parked_beside_it = await parked_in(store, "mail")
        done.set()
        await until_parked(store, "mail")

    assert parked_beside_it == 0


@pytest.fixture
async def idle_worker(store: RedisStore) -> AsyncIterator[tuple[Worker, Gate]]:
    """One of seven places, whose claim is parked."""
    gate, queue = Gate(), Queue("mail", store=store)
    gate.opened.set()
    async with Worker(queue, gate, concurrency=7) as worker:
        await (await queue.add("send")).result(timeout=PATIENCE)
        await until_parked(store, "mail")
        gate.opened.clear()
        yield worker, gate
        gate.opened.set()


def _add_at_once(store: RedisStore, number: int) -> None:
    """The claim is served before this returns, and its worker hears of it after that."""
    assert isinstance(store, ServerStore)
    store.add_blocking([[new_job(f"job-{n}", queue="mail") for n in range(number)]])


async def test_what_it_is_given_beyond_a_concurrency_that_was_lowered_meanwhile_is_handed_back(
    store: RedisStore, idle_worker: tuple[Worker, Gate]
):
    worker, gate = idle_worker
    _add_at_once(store, 20)
    worker.concurrency = 2
    await gate.holds(2)
    gate.opened.set()
    await told(worker.queues[0], "completed", count=21)

    assert gate.most == 2
    assert gate.runs == 21


async def test_what_it_is_given_although_its_worker_is_paused_is_handed_back(
    store: RedisStore, idle_worker: tuple[Worker, Gate]
):
    worker, gate = idle_worker
    _add_at_once(store, 5)
    worker.pause()
    await worker.idle()

    assert (await store.count("mail"))["waiting"] == 5
    assert gate.runs == 1
