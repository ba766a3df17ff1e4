"""Networks that lose answers, break, fall silent and crawl."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable

import pytest

from ropeway import Queue
from ropeway.errors import StoreUnavailable
from ropeway.store.values import Added
from ropeway.stores.redis import RedisStore
from ropeway.testing.arrange import add, claim, read
from ropeway.testing.conformance.listen import calm, hears
from ropeway.testing.factories import NOW, QUEUE, claim_request, complete, new_job, new_jobs
from tests.stores.network import Proxy, proxied

from .conftest import OpenStore, StartServer


@pytest.fixture
async def proxy(start_server: StartServer) -> AsyncIterator[Proxy]:
    async with proxied(start_server()) as proxy:
        yield proxy


@pytest.fixture
def store(open_store: OpenStore, proxy: Proxy) -> RedisStore:
    return open_store(proxy.url(timeout="0.5"))


async def _lose_the_answer(proxy: Proxy, call: Awaitable[object]) -> None:
    """The server does what it is asked, and nobody hears of it."""
    proxy.swallow_answers()
    calling = asyncio.ensure_future(call)
    await proxy.swallowed.wait()
    proxy.cut()
    with pytest.raises(StoreUnavailable):
        await calling
    proxy.heal()


async def test_a_lost_answer_to_an_add_is_made_good_by_repeating_it(store: RedisStore, proxy: Proxy):
    await add(store, new_job("first"))
    await _lose_the_answer(proxy, store.add([[new_job("a")]], now=NOW))

    assert await store.add([[new_job("a")]], now=NOW) == [[Added("a", "found")]]


async def test_a_queue_repeats_an_add_by_itself_and_adds_one_job(proxy: Proxy):
    async with Queue("letters", proxy.url()) as queue:
        await queue.counts()
        proxy.swallow_answers()
        adding = asyncio.create_task(queue.add("send", 1))
        await proxy.swallowed.wait()
        proxy.heal()
        proxy.cut()

        assert (await adding).created
        assert (await queue.counts())["waiting"] == 1


async def test_a_lost_answer_to_a_settle_is_made_good_by_repeating_it(store: RedisStore, proxy: Proxy):
    await add(store, *new_jobs(2))
    [job] = await claim(store, 1)
    await _lose_the_answer(proxy, store.settle(QUEUE, [complete(job)], claim_request(1, token="next")))

    again = await store.settle(QUEUE, [complete(job)], claim_request(1, token="next", repeat=True))

    assert [answer.verdict for answer in again.answers] == ["done"]
    assert again.claimed is not None
    assert [(job.token, job.attempts_started) for job in again.claimed.jobs] == [("next", 1)]


async def test_a_claim_whose_answer_was_lost_gets_the_same_jobs_again(store: RedisStore, proxy: Proxy):
    await add(store, *new_jobs(3))
    await _lose_the_answer(proxy, store.claim(claim_request(2, token="t")))

    again = await store.claim(claim_request(2, token="t", repeat=True))

    assert [(job.token, job.attempts_started) for job in again.jobs] == [("t", 1)] * 2
    assert (await store.count(QUEUE))["waiting"] == 1


async def test_half_an_answer_is_no_answer(store: RedisStore, proxy: Proxy):
    await add(store, new_job("a"))
    proxy.cut_in_the_next_answer()
    with pytest.raises(StoreUnavailable, match="unknown"):
        await store.get(QUEUE, ["a"])

    assert (await read(store, "a")).id == "a"


async def test_calls_into_silence_end_in_time_and_the_next_use_another_connection(store: RedisStore, proxy: Proxy):
    await add(store, new_job("a"))
    proxy.fall_silent()
    with pytest.raises(StoreUnavailable, match=r"0\.5 s"):
        await store.count(QUEUE)
    proxy.heal()

    assert (await read(store, "a")).state == "waiting"


async def test_a_listener_that_hears_nothing_because_its_connection_is_dead_gets_another(
    store: RedisStore, proxy: Proxy, start_server: StartServer, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("ropeway.stores.redis.subscriber.WATCH", 0.1)
    listener = store.listen("jobs", [QUEUE])
    await calm(listener)
    proxy.fall_silent()
    await open_store(proxy._server.url()).add([[new_job()]])
    proxy.heal()

    assert await hears(listener)
    listener.close()


async def test_a_link_that_crawls_is_given_up_and_does_not_hang(store: RedisStore, proxy: Proxy):
    await add(store, *new_jobs(20))
    proxy.rate = 50
    with pytest.raises(StoreUnavailable, match=r"0\.5 s"):
        await claim(store, 20)


async def test_an_answer_that_is_long_and_keeps_coming_is_waited_for(store: RedisStore, proxy: Proxy):
    data = f'"{"x" * 500_000}"'
    await add(store, *(new_job(data=data) for _ in range(6)))
    # For longer than a server may be silent.
    proxy.rate = 3_000_000

    assert len(await claim(store, 6)) == 6


async def test_a_producer_hears_at_once_that_nobody_is_there():
    queue = Queue("letters", "redis://127.0.0.1:1/0")
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        await queue.add("send")
    await queue.close()


async def test_a_producer_hears_soon_of_a_machine_that_does_not_answer(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ropeway.store.tries.CONNECTING", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        # With TLS, where who was called has to speak before anything is sent.
        queue = Queue("letters", f"rediss://127.0.0.1:{silent.getsockname()[1]}/0")
        with pytest.raises(StoreUnavailable, match=r"no answer within 0\.1 s"):
            await queue.add("send")
        await queue.close()
