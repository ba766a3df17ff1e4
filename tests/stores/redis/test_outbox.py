"""Jobs for queues in other slots, delivered more than once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

import pytest
from msgspec.structs import replace

from ropeway.errors import StoreUnavailable
from ropeway.job.record import NewJob
from ropeway.job.retention import Retention
from ropeway.store.values import Added, StallRules
from ropeway.stores.redis import RedisStore
from ropeway.stores.redis.outbox import ASKED_AFTER, LATEST
from ropeway.testing.arrange import active, claim, read
from ropeway.testing.factories import NOW, QUEUE, complete, new_job
from tests.stores.servers import new_prefix, shared_cluster

from .conftest import OpenStore

AWAY: Final = "parcels"


class Died(Exception):
    """What a producer raises in the place of its death."""


@pytest.fixture
def url() -> str:
    return shared_cluster().url(new_prefix())


@pytest.fixture
def store(open_store: OpenStore, url: str) -> RedisStore:
    return open_store(url)


@pytest.fixture
def producer(open_store: OpenStore, url: str) -> RedisStore:
    return open_store(url)


def before(producer: RedisStore, awaited: str, act: Callable[[], Awaitable[object]]) -> None:
    """Does something when the producer is about to call a script."""
    call = producer._executor.call

    async def instead(script: str, keys: tuple[str, ...], *arguments: Any) -> Any:
        if script == awaited:
            producer._executor.call = call  # type: ignore[method-assign]  # from here on as ever
            await act()
        return await call(script, keys, *arguments)

    producer._executor.call = instead  # type: ignore[method-assign]  # the one way to be between two trips


async def die() -> None:
    raise Died


def bundle() -> list[NewJob]:
    return [new_job("a"), new_job("b", queue=AWAY)]


async def add(producer: RedisStore) -> list[Added]:
    [answers] = await producer.add([bundle()], now=NOW)
    return answers


async def run_all(store: RedisStore) -> list[str]:
    """Runs what is there and keeps nothing of it."""
    ran: list[str] = []
    for queue in (QUEUE, AWAY):
        held = await claim(store, 10, queue=queue)
        await store.settle(queue, [complete(job, keep=Retention(0, None)) for job in held], now=NOW)
        ran += [job.id for job in held]
    return ran


async def tick(store: RedisStore, now: int = NOW) -> None:
    for queue in (QUEUE, AWAY):
        await store.tick(queue, StallRules(), now=now)


async def known_senders(store: RedisStore) -> int:
    key = store._executor.keys.queue(AWAY)
    return sum([await store._executor.execute("ZCARD", f"{key}:{kind}") for kind in ("arrived", "delivered")])


async def test_what_a_crash_left_in_the_outbox_is_delivered_by_a_tick(store: RedisStore, producer: RedisStore):
    before(producer, "receive", die)
    with pytest.raises(Died):
        await add(producer)
    assert await store.get(AWAY, ["b"]) == [None]

    for _ in range(2):
        await tick(store)

    assert (await read(store, "b", AWAY)).state == "waiting"
    assert (await store.count(AWAY))["waiting"] == 1


@pytest.mark.parametrize("verb", ["receive", "sent"])
async def test_a_tick_while_the_producer_delivers_stores_no_job_twice(
    store: RedisStore, producer: RedisStore, verb: str
):
    ran: list[str] = []

    async def tick_and_run() -> None:
        await tick(store)
        ran.extend(await run_all(store))
        await tick(store)

    before(producer, verb, tick_and_run)
    answers = await add(producer)
    ran += await run_all(store)

    assert ran == ["a", "b"]
    assert [answer.verdict for answer in answers] == ["created", "created"]


async def test_a_producer_that_dies_after_delivery_leaves_nothing_to_run_again(store: RedisStore, producer: RedisStore):
    before(producer, "sent", die)
    with pytest.raises(Died):
        await add(producer)
    assert await run_all(store) == ["a", "b"]

    # As if no worker had looked after the queue for long, and then one did.
    for minutes in range(0, 60, 5):
        await store.tick(AWAY, StallRules(), now=NOW + minutes * 60_000)
    await tick(store, NOW + 3_600_000)

    assert await run_all(store) == []


async def test_an_add_that_is_repeated_replaces_what_its_first_try_left_in_the_outbox(
    store: RedisStore, producer: RedisStore
):
    before(producer, "receive", die)
    with pytest.raises(Died):
        await add(producer)

    await add(producer)
    assert await run_all(store) == ["a", "b"]
    await tick(store)

    assert await run_all(store) == []


async def test_a_bundle_of_jobs_that_came_and_went_is_stored_anew(store: RedisStore, producer: RedisStore):
    for _ in range(2):
        await add(producer)
        assert await run_all(store) == ["a", "b"]


async def test_senders_are_forgotten_when_nobody_can_deliver_again(store: RedisStore, producer: RedisStore):
    await add(producer)
    assert await known_senders(store) == 1

    asked_at = NOW + ASKED_AFTER + 1
    await tick(store, asked_at)
    await tick(store, asked_at + LATEST)
    assert await known_senders(store) == 1
    await tick(store, asked_at + 2 * LATEST + 1)

    assert await known_senders(store) == 0


async def test_a_sender_is_kept_while_its_jobs_are_in_the_outbox(store: RedisStore, producer: RedisStore):
    before(producer, "sent", die)
    with pytest.raises(Died):
        await add(producer)

    for hours in range(1, 10):
        await store.tick(AWAY, StallRules(), now=NOW + hours * 3_600_000)

    assert await known_senders(store) == 1


async def test_a_producer_that_was_stopped_for_long_leaves_delivery_to_a_tick(store: RedisStore, producer: RedisStore):
    call = producer._executor.call

    async def late(script: str, keys: tuple[str, ...], *arguments: Any) -> Any:
        # Its jobs began to travel when it asked for the time.
        said = await call(script, keys, *arguments)
        return said - LATEST - 1 if script == "clock" else said

    producer._executor.call = late  # type: ignore[method-assign]  # stops it between two trips
    await producer.add([bundle()])
    assert await store.get(AWAY, ["b"]) == [None]

    await store.tick(QUEUE, StallRules())

    assert await run_all(store) == ["a", "b"]


class TestJobsOfOutcomes:
    async def settle(self, producer: RedisStore) -> None:
        held = await active(producer)
        outcome = replace(complete(held, keep=Retention(0, None)), adds=tuple(bundle()))
        settled = await producer.settle(QUEUE, [outcome], now=NOW)
        assert [answer.verdict for answer in settled.answers] == ["done"]

    async def test_they_arrive_at_once(self, store: RedisStore, producer: RedisStore):
        await self.settle(producer)

        assert await run_all(store) == ["a", "b"]
        await tick(store)
        assert await run_all(store) == []

    async def test_what_a_crash_left_in_the_outbox_is_delivered_by_a_tick(
        self, store: RedisStore, producer: RedisStore
    ):
        before(producer, "receive", die)
        with pytest.raises(Died):
            await self.settle(producer)
        assert await run_all(store) == ["a"]

        for _ in range(2):
            await tick(store)

        assert await run_all(store) == ["b"]

    @pytest.mark.parametrize("verb", ["receive", "sent"])
    async def test_a_tick_while_the_worker_delivers_stores_no_job_twice(
        self, store: RedisStore, producer: RedisStore, verb: str
    ):
        ran: list[str] = []

        async def tick_and_run() -> None:
            await tick(store)
            ran.extend(await run_all(store))
            await tick(store)

        before(producer, verb, tick_and_run)
        await self.settle(producer)
        ran += await run_all(store)

        assert ran == ["a", "b"]

    async def test_a_node_that_is_away_holds_up_no_outcome(self, store: RedisStore, producer: RedisStore):
        async def is_away() -> None:
            raise StoreUnavailable(producer.url, "its node is away")

        before(producer, "receive", is_away)
        await self.settle(producer)
        assert await run_all(store) == ["a"]

        await tick(store)

        assert await run_all(store) == ["b"]
