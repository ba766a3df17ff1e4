"""Claims that stand in the server: who is given jobs, and what becomes of them when a message is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial

import pytest

from ropeway import Queue, Worker
from ropeway.store.values import Served
from ropeway.stores.redis import RedisStore
from ropeway.stores.redis.claiming import ClaimingListener
from ropeway.stores.redis.standing import Standing
from ropeway.stores.redis.store import ServerStore
from ropeway.testing.arrange import add, read
from ropeway.testing.conformance.listen import calm
from ropeway.testing.factories import QUEUE, claim_request, new_job
from tests.stores.waiting import PATIENCE
from tests.worker.watching import Gate, told

from .conftest import OpenStore


async def standing_in(store: RedisStore, queue: str = QUEUE) -> int:
    return int(await store._executor.execute("ZCARD", f"{store._executor.keys.queue(queue)}:standing"))


async def until_they_stand(store: RedisStore, queue: str = QUEUE, number: int = 1) -> None:
    async with asyncio.timeout(PATIENCE):
        while await standing_in(store, queue) < number:
            pass


async def leave(store: RedisStore, limit: int = 10) -> tuple[ClaimingListener, asyncio.Task[Served | None]]:
    """A claim that stands in a queue which is there and empty."""
    await add(store, new_job("first"))
    await store.remove(QUEUE, ["first"])
    listener = store.listen("jobs", [QUEUE])
    assert isinstance(listener, ClaimingListener)
    # The server's word that it is heard wakes it too, and would end the claim.
    await calm(listener)
    leaving = asyncio.create_task(listener.claim(claim_request(limit, token="mine"), 60))
    await until_they_stand(store)
    return listener, leaving


def ids_of(served: Served | None) -> list[str]:
    assert served is not None
    return [job.id for job in served.claimed.jobs]


async def test_a_lone_add_serves_it(store: RedisStore):
    listener, leaving = await leave(store)

    await add(store, new_job("a"))

    assert ids_of(await leaving) == ["a"]
    assert await standing_in(store) == 0
    listener.close()


async def test_a_job_that_is_handed_over_is_the_same_as_one_that_was_claimed(store: RedisStore):
    listener, leaving = await leave(store)

    await add(store, new_job("a"))

    served = await leaving
    assert served is not None
    assert served.claimed.jobs == [await read(store, "a")]
    assert (await store.count(QUEUE))["active"] == 1
    listener.close()


async def test_bundles_serve_it(store: RedisStore):
    listener, leaving = await leave(store, limit=2)

    await add(store, *(new_job(f"job-{n}") for n in range(3)))

    assert ids_of(await leaving) == ["job-0", "job-1"]
    assert (await read(store, "job-2")).state == "waiting"
    listener.close()


async def test_the_one_that_stands_longest_is_served_first(store: RedisStore, url: str, open_store: OpenStore):
    listener, leaving = await leave(store)
    other = open_store(url).listen("jobs", [QUEUE])
    await calm(other)
    later = asyncio.create_task(other.claim(claim_request(token="other"), 120))
    await until_they_stand(store, number=2)

    await add(store, new_job("a"))
    assert ids_of(await leaving) == ["a"]
    await add(store, new_job("b"))

    assert ids_of(await later) == ["b"]
    listener.close()
    other.close()


@pytest.mark.parametrize("number", [1, 2])
async def test_one_whose_worker_is_gone_gets_nothing(store: RedisStore, number: int):
    await add(store, new_job("first"))
    await store.remove(QUEUE, ["first"])
    await Standing(partial(store._executor.run_packed, QUEUE), claim_request(token="dead"), "nobody hears this").leave(
        60
    )

    await add(store, *(new_job(f"job-{n}") for n in range(number)))

    assert (await store.count(QUEUE))["waiting"] == number
    assert await standing_in(store) == 0


async def test_a_message_that_was_lost_is_made_good_for(store: RedisStore, monkeypatch: pytest.MonkeyPatch):
    listener, leaving = await leave(store)
    monkeypatch.setattr(listener, "hear", lambda _channel, _message: None)
    await add(store, new_job("a"))
    assert (await read(store, "a")).state == "active"

    listener.interrupt()

    assert ids_of(await leaving) == ["a"]
    listener.close()


async def test_a_connection_that_broke_while_it_stood_costs_nothing(store: RedisStore):
    listener, leaving = await leave(store)

    await store._executor.execute("CLIENT", "KILL", "TYPE", "pubsub")

    # It is woken when the subscription stands again, and looks for itself.
    assert ids_of(await leaving) == []
    listener.close()


async def test_jobs_too_large_for_a_message_come_all_the_same(store: RedisStore):
    listener, leaving = await leave(store)

    await add(store, *(new_job(f"job-{n}", data='"' + "x" * 100_000 + '"') for n in range(5)))

    assert ids_of(await leaving) == [f"job-{n}" for n in range(5)]
    listener.close()


async def test_a_cancelled_claim_gives_back_what_it_was_given(store: RedisStore, monkeypatch: pytest.MonkeyPatch):
    listener, leaving = await leave(store)
    monkeypatch.setattr(listener, "hear", lambda _channel, _message: None)
    await add(store, new_job("a"))
    entries = store.listen("events", [QUEUE])
    await entries.wait(1)

    leaving.cancel()
    while (await read(store, "a")).state != "waiting":
        await entries.wait(1)

    assert (await read(store, "a")).attempts_made == 0
    listener.close()


async def test_a_worker_that_runs_a_job_leaves_no_claim(store: RedisStore):
    running, done = asyncio.Event(), asyncio.Event()

    async def handler(_: object) -> None:
        running.set()
        await done.wait()

    queue = Queue("mail", store=store)
    async with Worker(queue, handler, concurrency=10):
        await queue.add("send")
        await running.wait()
        standing_beside_it = await standing_in(store, "mail")
        done.set()
        await until_they_stand(store, "mail")

    assert standing_beside_it == 0


@pytest.fixture
async def idle_worker(store: RedisStore) -> AsyncIterator[tuple[Worker, Gate]]:
    """One of seven places, whose claim stands."""
    gate, queue = Gate(), Queue("mail", store=store)
    gate.opened.set()
    async with Worker(queue, gate, concurrency=7) as worker:
        await (await queue.add("send")).result(timeout=PATIENCE)
        await until_they_stand(store, "mail")
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
