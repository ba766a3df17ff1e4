"""Networks that lose answers, break, fall silent and crawl."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable

import pytest

from ropeway import Queue
from ropeway.errors import StoreUnavailable
from ropeway.store.values import Added
from ropeway.stores.postgres import PostgresStore
from ropeway.stores.postgres.pool import MOST_LINKS
from ropeway.stores.postgres.target import Target
from ropeway.testing.arrange import add, claim, read
from ropeway.testing.factories import NOW, QUEUE, claim_request, complete, new_job, new_jobs
from tests.patience import PATIENCE
from tests.stores.databases import DatabaseProcess
from tests.stores.network import Proxy
from tests.stores.waiting import until

from .conftest import OpenStore


@pytest.fixture
def store(open_store: OpenStore, proxy: Proxy) -> PostgresStore:
    return open_store(proxy.url(timeout="0.5"))


async def _lose_the_answer(proxy: Proxy, call: Awaitable[object]) -> None:
    """The server does what it is asked, and nobody hears of it."""
    proxy.swallow_answers()
    calling = asyncio.ensure_future(call)
    await proxy.swallowed.wait()
    proxy.cut()
    with pytest.raises(StoreUnavailable, match="unknown"):
        await calling
    proxy.heal()


async def _used(store: PostgresStore) -> None:
    """So that the next answer is that to the call itself."""
    await add(store, new_job("first"))
    [job] = (await store.claim(claim_request(1, token="first"), now=NOW)).jobs
    await store.settle(QUEUE, [complete(job)], now=NOW)
    await _calm(store)


async def _calm(store: PostgresStore) -> None:
    pool = store._executor.resources().pool
    if (opening := pool._opening._task) is not None:
        await opening
    await until(lambda: all(link.is_free for link in pool._links))


async def test_a_lost_answer_to_an_add_is_made_good_by_repeating_it(store: PostgresStore, proxy: Proxy):
    await _used(store)
    await _lose_the_answer(proxy, store.add([[new_job("a")]], now=NOW))

    assert await store.add([[new_job("a")]], now=NOW) == [[Added("a", "found")]]


async def test_a_queue_repeats_an_add_by_itself_and_adds_one_job(proxy: Proxy):
    async with Queue("letters", proxy.url()) as queue:
        await queue.add("send", 0)
        proxy.swallow_answers()
        adding = asyncio.create_task(queue.add("send", 1))
        await proxy.swallowed.wait()
        proxy.heal()
        proxy.cut()

        assert (await adding).created
        assert (await queue.counts())["waiting"] == 2


async def test_a_lost_answer_to_a_settle_is_made_good_by_repeating_it(store: PostgresStore, proxy: Proxy):
    await _used(store)
    await add(store, *new_jobs(2))
    [job] = await claim(store, 1)
    await _calm(store)
    await _lose_the_answer(proxy, store.settle(QUEUE, [complete(job)], claim_request(1, token="next"), now=NOW))

    again = await store.settle(QUEUE, [complete(job)], claim_request(1, token="next", repeat=True), now=NOW)

    assert [answer.verdict for answer in again.answers] == ["done"]
    assert again.claimed is not None
    assert [(job.token, job.attempts_started) for job in again.claimed.jobs] == [("next", 1)]


async def test_a_claim_whose_answer_was_lost_gets_the_same_jobs_again(store: PostgresStore, proxy: Proxy):
    await _used(store)
    await add(store, *new_jobs(3))
    await _calm(store)
    await _lose_the_answer(proxy, store.claim(claim_request(2, token="t"), now=NOW))

    again = await store.claim(claim_request(2, token="t", repeat=True), now=NOW)

    assert [(job.token, job.attempts_started) for job in again.jobs] == [("t", 1)] * 2
    assert (await store.count(QUEUE))["waiting"] == 1


async def test_half_an_answer_is_no_answer(store: PostgresStore, proxy: Proxy):
    await add(store, new_job("a"))
    await read(store, "a")
    await _calm(store)
    proxy.cut_in_the_next_answer()
    with pytest.raises(StoreUnavailable, match="unknown"):
        await store.get(QUEUE, ["a"])

    assert (await read(store, "a")).id == "a"


async def test_calls_into_silence_end_in_time_and_the_next_use_another_connection(store: PostgresStore, proxy: Proxy):
    await asyncio.gather(*(store.count(QUEUE) for _ in range(10)))
    await add(store, new_job("a"))
    await _calm(store)
    proxy.fall_silent()
    with pytest.raises(StoreUnavailable, match=r"0\.5 s"):
        await store.count(QUEUE)
    proxy.heal()

    assert (await read(store, "a")).state == "waiting"


def test_servers_that_do_not_answer_count_as_gone_after_10_seconds():
    assert Target.from_url("postgresql://localhost/db").timeout == 10


async def test_the_end_of_a_transaction_of_the_store_s_own_is_not_waited_for_for_ever(proxy: Proxy):
    async with Queue("letters", proxy.url(timeout="0.5")) as queue:
        await queue.add("send")

        async def use() -> None:
            async with queue.transaction() as tx:
                await tx.execute("SELECT 1")
                proxy.fall_silent()

        with pytest.raises(StoreUnavailable):
            await use()
        proxy.heal()
        proxy.cut()


async def test_a_handle_that_owes_a_wake_is_closed_although_nobody_answers(open_store: OpenStore, proxy: Proxy):
    store = open_store(proxy.url(timeout="600"))
    await _used(store)
    store._executor.resources().notifier.note([QUEUE], ["jobs:1"])
    proxy.fall_silent()
    await asyncio.wait_for(store.close(), PATIENCE)


async def test_a_link_that_crawls_is_given_up_and_does_not_hang(store: PostgresStore, proxy: Proxy):
    await add(store, *new_jobs(20))
    await claim(store, 1)
    await _calm(store)
    proxy.rate = 50
    with pytest.raises(StoreUnavailable, match=r"0\.5 s"):
        await claim(store, 19)


async def test_an_answer_that_is_long_and_keeps_coming_is_waited_for(store: PostgresStore, proxy: Proxy):
    data = f'"{"x" * 100_000}"'
    await add(store, *(new_job(data=data) for _ in range(6)))
    # For longer than a server may be silent.
    proxy.rate = 500_000

    assert len(await claim(store, 6)) == 6


async def test_a_connection_is_made_although_every_answer_takes_long(
    open_store: OpenStore, server: DatabaseProcess, proxy: Proxy
):
    await open_store(server.url()).open()
    proxy.latency = 0.3

    assert await open_store(proxy.url(timeout="0.5")).add([[new_job("a")]]) == [[Added("a", "created")]]


async def test_a_producer_hears_at_once_that_nobody_is_there():
    queue = Queue("letters", "postgresql://nobody@127.0.0.1:1/none")
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        await queue.add("send")
    await queue.close()


async def test_a_producer_hears_soon_of_a_machine_that_does_not_answer():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        queue = Queue("letters", f"postgresql://nobody@127.0.0.1:{silent.getsockname()[1]}/none?timeout=0.1")
        with pytest.raises(StoreUnavailable, match=r"no answer within 0\.1 s"):
            await queue.add("send")
        await queue.close()


async def test_a_handle_has_few_connections_however_many_calls_are_under_way(
    open_store: OpenStore, server: DatabaseProcess
):
    store = open_store(server.url())
    await asyncio.gather(*(store.add([[new_job()]]) for _ in range(100)))
    await asyncio.gather(*(store.add([[new_job()]]) for _ in range(100)))
    assert server.execute("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'ropeway'") == [(MOST_LINKS,)]
