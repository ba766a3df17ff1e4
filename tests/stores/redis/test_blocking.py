"""Adds on the calling thread, without an event loop: what the network, the server and signals do to them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

import pytest

from ropeway import Queue
from ropeway.errors import StoreFull, StoreReadOnly, StoreRefused, StoreUnavailable
from ropeway.stores.redis import RedisStore
from ropeway.stores.redis.blocking import KEPT
from ropeway.stores.redis.store import ServerStore
from ropeway.testing.factories import QUEUE, new_job
from tests.client import programs
from tests.stores.network import Proxy, proxied
from tests.stores.servers import ServerProcess, new_place, shared_cluster
from tests.stores.waiting import until

from .conftest import OpenStore, StartServer


@pytest.fixture
def server(start_server: StartServer) -> ServerProcess:
    return start_server()


@pytest.fixture
async def proxy(server: ServerProcess) -> AsyncIterator[Proxy]:
    async with proxied(server) as proxy:
        yield proxy


@pytest.fixture
def far(open_store: OpenStore, proxy: Proxy) -> RedisStore:
    """Behind the proxy."""
    return open_store(proxy.url(timeout="0.5"))


async def add_blocking(store: RedisStore, *ids: str) -> list[str]:
    assert isinstance(store, ServerStore)
    [answers] = await asyncio.to_thread(store.add_blocking, [[new_job(id) for id in ids]])
    return [answer.verdict for answer in answers]


def connections(server: ServerProcess) -> int:
    return len([line for line in server.ask("CLIENT", "LIST").splitlines() if b"cmd=evalsha" in line])


@pytest.mark.parametrize("url", ["redis+cluster://127.0.0.1:1", "redis+sentinel://127.0.0.1:1/main"])
async def test_it_is_not_offered_where_the_server_has_to_be_found_first(url: str, open_store: OpenStore):
    assert open_store(url).offers.blocking_adds is None


def test_sync_adds_to_a_cluster_work_all_the_same():
    with Queue("letters", shared_cluster().url(new_place().rpartition("prefix=")[2])).sync as queue:
        assert queue.add("send").created


async def test_threads_that_add_one_after_the_other_share_a_connection(server: ServerProcess, open_store: OpenStore):
    store = open_store(server.url())
    for n in range(5):
        await add_blocking(store, f"{n}")

    assert connections(server) == 1


async def test_closing_the_store_closes_the_connections(server: ServerProcess, open_store: OpenStore):
    store = open_store(server.url())
    await asyncio.gather(*(add_blocking(store, f"{n}") for n in range(8)))
    assert 1 <= connections(server) <= KEPT
    await store.close()

    await until(lambda: not connections(server))


async def test_a_server_that_forgot_its_scripts_is_told_them_again(server: ServerProcess, open_store: OpenStore):
    store = open_store(server.url())
    await add_blocking(store, "a")
    assert server.ask("SCRIPT", "FLUSH") == b"+OK\r\n"

    assert await add_blocking(store, "b") == ["created"]
    assert await add_blocking(store, "b", "c") == ["found", "created"]


async def test_a_queue_that_was_emptied_is_noted_again(server: ServerProcess, open_store: OpenStore):
    store = open_store(server.url())
    await add_blocking(store, "a")
    server.ask("FLUSHALL", "SYNC")

    assert await add_blocking(store, "a") == ["created"]
    assert await store.queues() == [QUEUE]


async def test_a_connection_that_ended_while_nobody_used_it_is_replaced(far: RedisStore, proxy: Proxy):
    await add_blocking(far, "a")
    proxy.cut()
    await until(lambda: not proxy._writers)

    assert await add_blocking(far, "b") == ["created"]


async def test_a_lost_answer_is_made_good_by_repeating_the_add(far: RedisStore, proxy: Proxy):
    await add_blocking(far, "a")
    proxy.swallow_answers()
    adding = asyncio.create_task(add_blocking(far, "b"))
    await proxy.swallowed.wait()
    proxy.heal()
    proxy.cut()
    with pytest.raises(StoreUnavailable, match="unknown"):
        await adding

    assert await add_blocking(far, "b") == ["found"]


async def test_a_queue_repeats_an_add_by_itself_and_adds_one_job(proxy: Proxy):
    queue = Queue("letters", proxy.url())
    await asyncio.to_thread(queue.sync.add, "first")
    proxy.swallow_answers()
    adding = asyncio.create_task(asyncio.to_thread(queue.sync.add, "send"))
    await proxy.swallowed.wait()
    proxy.heal()
    proxy.cut()

    assert (await adding).created
    assert (await queue.counts())["waiting"] == 2
    await queue.close()


async def test_half_an_answer_is_no_answer(far: RedisStore, proxy: Proxy):
    await add_blocking(far, "a")
    proxy.cut_in_the_next_answer()
    with pytest.raises(StoreUnavailable, match="unknown"):
        await add_blocking(far, "b")

    assert await add_blocking(far, "a", "b") == ["found", "found"]


@pytest.mark.parametrize("rate", [0, 5], ids=["silent", "crawling"])
async def test_a_server_that_does_not_answer_in_time_is_given_up(far: RedisStore, proxy: Proxy, rate: int):
    await add_blocking(far, "a")
    proxy.rate = rate
    if not rate:
        proxy.fall_silent()
    with pytest.raises(StoreUnavailable, match=r"no answer within 0\.5 s"):
        await add_blocking(far, "b")
    proxy.heal()

    assert await add_blocking(far, "a") == ["found"]


async def test_a_server_that_restarts_is_waited_for(server: ServerProcess, open_store: OpenStore):
    store = open_store(server.url())
    await add_blocking(store, "a")
    server.kill()
    adding = asyncio.create_task(add_blocking(store, "b"))
    await asyncio.to_thread(server.start)

    assert await adding == ["created"]


async def test_a_server_that_stays_away_is_waited_for_only_once(
    server: ServerProcess, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
):
    store = open_store(server.url())
    await add_blocking(store, "a")
    monkeypatch.setattr("ropeway.stores.redis.blocking.PATIENCE", 0.1)
    server.kill()
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        await add_blocking(store, "b")

    # Whoever repeats it hears at once.
    monkeypatch.setattr("ropeway.stores.redis.blocking.PATIENCE", 1_000)
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        await add_blocking(store, "b")


def test_a_producer_hears_at_once_that_nobody_is_there():
    queue = Queue("letters", "redis://127.0.0.1:1/0")
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        queue.sync.add("send")
    queue.sync.close()


async def test_what_passes_soon_is_waited_out(server: ServerProcess, open_store: OpenStore):
    store = open_store(server.url())
    await add_blocking(store, "a")
    server.ask("REPLICAOF", "127.0.0.1", "1")
    adding = asyncio.create_task(add_blocking(store, "b"))
    await until(lambda: b"errorstat_READONLY" in server.ask("INFO", "errorstats"))
    server.ask("REPLICAOF", "NO", "ONE")

    assert await adding == ["created"]


async def test_what_does_not_pass_soon_may_be_asked_again(
    server: ServerProcess, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("ropeway.stores.redis.blocking.PATIENCE", 0.05)
    store = open_store(server.url())
    await add_blocking(store, "a")
    server.ask("CONFIG", "SET", "min-replicas-to-write", "1")
    with pytest.raises(StoreUnavailable, match="NOREPLICAS"):
        await add_blocking(store, "b")
    server.ask("CONFIG", "SET", "min-replicas-to-write", "0")

    assert await add_blocking(store, "b") == ["created"]


async def test_a_full_server_says_so_and_nothing_is_half_done(server: ServerProcess, open_store: OpenStore):
    store = open_store(server.url())
    await add_blocking(store, "a")
    server.ask("CONFIG", "SET", "maxmemory", "1")
    with pytest.raises(StoreFull, match="memory is full"):
        await add_blocking(store, "b")
    server.ask("CONFIG", "SET", "maxmemory", "0")

    assert await store.get(QUEUE, ["b"]) == [None]
    assert await add_blocking(store, "b") == ["created"]


@pytest.mark.parametrize("given", ["", ":wrong@"])
async def test_a_wrong_password_is_refused(start_server: StartServer, open_store: OpenStore, given: str):
    server = start_server("--requirepass", "s3cret")
    with pytest.raises(StoreRefused, match="check user, password"):
        await add_blocking(open_store(server.url().replace("redis://", f"redis://{given}")), "a")

    assert await add_blocking(open_store(server.url().replace("redis://", "redis://:s3cret@")), "a") == ["created"]


async def test_the_database_of_the_url_is_used(server: ServerProcess, open_store: OpenStore):
    assert await add_blocking(open_store(server.url().replace("/0?", "/3?")), "a") == ["created"]
    assert b"db3" in server.ask("INFO", "keyspace")


async def test_a_server_that_evicts_is_refused(start_server: StartServer, open_store: OpenStore):
    store = open_store(start_server("--maxmemory-policy", "allkeys-lru").url())
    for _ in range(2):
        with pytest.raises(StoreRefused, match="maxmemory-policy"):
            await add_blocking(store, "a")


async def test_a_replica_is_refused(start_server: StartServer, open_store: OpenStore):
    with pytest.raises(StoreReadOnly, match="replica"):
        await add_blocking(open_store(start_server("--replicaof", "127.0.0.1", "1").url()), "a")


async def test_a_server_without_a_disk_is_warned_about(
    server: ServerProcess, open_store: OpenStore, caplog: pytest.LogCaptureFixture
):
    with caplog.at_level(logging.WARNING, "ropeway"):
        await add_blocking(open_store(server.url()), "a")

    assert "keeps nothing on disk" in caplog.text


FOREIGN = """
from ropeway.job.record import NewJob
from ropeway.store.url import connect
from tests.storming import Storm

store = connect(url)
wrong = 0

def add(id):
    [[answer]] = store.add_blocking([[NewJob("letters", id, "send", "null")]])
    return answer.verdict

def act():
    global wrong
    verdicts = add(f"new-{time.monotonic_ns()}"), add("known")
    wrong += verdicts != ("created", "found")

add("known")
Storm({base}).interrupt(1_000, act)
say(f"{wrong} wrong")
asyncio.run(store.close())
"""


@pytest.mark.parametrize("base", ["KeyboardInterrupt", "TimeoutError", "ConnectionResetError"])
def test_what_a_signal_raises_comes_out_as_it_is_and_nobody_gets_anothers_answer(base: str):
    ended = programs.run(FOREIGN.replace("{base}", base), new_place())

    assert (ended.code, ended.said) == (0, ["0 wrong"]), ended.complaints
