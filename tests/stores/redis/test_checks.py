"""What is asked of a server before jobs are trusted to it."""

from __future__ import annotations

import logging
import socket
import struct

import pytest

from ropeway.errors import InvalidOption, StoreCorrupt, StoreFull, StoreReadOnly, StoreRefused, StoreUnavailable
from ropeway.store.commands import Find
from ropeway.store.values import Record, StallRules
from ropeway.stores.redis import RedisStore
from ropeway.stores.redis.encoding import pack
from ropeway.stores.redis.target import Target
from ropeway.testing.arrange import add, claim, read
from ropeway.testing.conformance.waiting_claims import waiting_request
from ropeway.testing.factories import LOCK, NOW, QUEUE, claim_request, new_job, new_jobs
from tests.stores.waiting import until

from .conftest import OpenStore, StartServer


async def test_a_server_that_evicts_is_refused(start_server: StartServer, open_store: OpenStore):
    server = start_server("--maxmemory-policy", "allkeys-lru")

    with pytest.raises(StoreRefused, match=r"maxmemory-policy is allkeys-lru.*noeviction"):
        await open_store(server.url()).open()


async def test_eviction_can_be_allowed_by_name(start_server: StartServer, open_store: OpenStore):
    server = start_server("--maxmemory-policy", "allkeys-lru")

    await add(open_store(server.url(allow_eviction="1")), new_job())


async def test_a_server_without_a_disk_is_warned_about(
    start_server: StartServer, open_store: OpenStore, caplog: pytest.LogCaptureFixture
):
    server = start_server()
    with caplog.at_level(logging.WARNING, "ropeway"):
        await open_store(server.url()).open()

    assert "keeps nothing on disk" in caplog.text


async def test_a_full_server_says_so_and_nothing_is_half_done(start_server: StartServer, open_store: OpenStore):
    server = start_server()
    store = open_store(server.url())
    await add(store, new_job("before"))
    await store._executor.execute("CONFIG", "SET", "maxmemory", "1")

    with pytest.raises(StoreFull, match="memory is full"):
        await store.add([[new_job("a")]])

    await store._executor.execute("CONFIG", "SET", "maxmemory", "0")
    assert await store.get("letters", ["a"]) == [None]
    assert (await read(store, "before")).state == "waiting"


@pytest.mark.parametrize("given", ["", ":wrong@"])
async def test_a_wrong_password_is_refused_and_not_shown(start_server: StartServer, open_store: OpenStore, given: str):
    server = start_server("--requirepass", "s3cret")
    store = open_store(server.url().replace("redis://", f"redis://{given}"))

    with pytest.raises(StoreRefused, match="check user, password") as refused:
        await store.count("letters")

    assert "wrong" not in str(refused.value).replace("WRONGPASS", "")


async def test_the_right_password_is_taken(start_server: StartServer, open_store: OpenStore):
    server = start_server("--requirepass", "s3cret")

    await add(open_store(server.url().replace("redis://", "redis://default:s3cret@")), new_job())


async def test_a_replica_is_refused(start_server: StartServer, open_store: OpenStore):
    primary = start_server(port=0)
    replica = start_server("--replicaof", "127.0.0.1", "1")
    await add(open_store(primary.url()), new_job())

    with pytest.raises(StoreReadOnly, match="replica"):
        await open_store(replica.url()).open()


async def test_nobody_there_is_said_at_once(open_store: OpenStore):
    with pytest.raises(StoreUnavailable):
        await open_store("redis://127.0.0.1:1/0").open()


def test_a_password_is_never_shown():
    target = Target.from_url("rediss://me:s3cret@jobs.example:6380/2?prefix=shop")

    assert "s3cret" not in target.url
    assert (target.host, target.port, target.database, target.prefix) == ("jobs.example", 6380, 2, "shop")
    assert (target.username, target.password, target.uses_tls) == ("me", "s3cret", True)


def test_ipv6_addresses_stand_in_brackets():
    target = Target.from_url("redis+cluster://[::1]:7000,[fe80::2],other:7001")

    assert target.seeds == (("::1", 7000), ("fe80::2", 6379), ("other", 7001))
    with pytest.raises(InvalidOption, match=r"an IPv6 address is \[::1\]"):
        Target.from_url("redis://::1/0")


async def test_a_job_whose_data_was_evicted_does_not_stop_its_queue(store: RedisStore):
    await add(store, new_job("lost"), new_job("kept"), new_job("later", delay=1), new_job("gone", delay=1))
    held = await claim(store, 1)
    for id in ("gone", held[0].id):
        await store._executor.execute("HDEL", f"{store._executor.keys.queue(QUEUE)}:jobs", id)

    ticked = await store.tick(QUEUE, StallRules(), now=NOW + LOCK)

    assert ticked.stalled == []
    assert [job.id for job in await claim(store, 5, now=NOW + LOCK)] == ["kept", "later"]
    counts = await store.count(QUEUE)
    assert (counts["waiting"], counts["active"], counts["delayed"]) == (0, 2, 0)


async def test_a_line_that_was_evicted_does_not_stop_its_queue(store: RedisStore):
    await add(store, new_job("lost", name="send"), new_job("kept", name="print"))
    await store._executor.execute("UNLINK", f"{store._executor.keys.queue(QUEUE)}:waiting:send")

    assert [job.id for job in await claim(store, 1)] == []
    assert [job.id for job in await claim(store, 1)] == ["kept"]


async def test_a_database_that_the_server_does_not_have_is_said_to_be_missing(
    start_server: StartServer, open_store: OpenStore
):
    url = start_server().url().replace("/0?", "/99?")

    with pytest.raises(StoreRefused, match="no database of that number"):
        await open_store(url).open()


async def test_a_server_with_too_many_clients_is_unavailable_and_serves_later(
    start_server: StartServer, open_store: OpenStore
):
    server = start_server("--maxclients", "2")
    store = open_store(server.url())
    with socket.socket(socket.AF_UNIX) as one, socket.socket(socket.AF_UNIX) as other:
        one.connect(str(server.path))
        other.connect(str(server.path))
        # It says why and hangs up, perhaps before it was asked anything.
        with pytest.raises(StoreUnavailable):
            await claim(store)

    await until(lambda: server.ask("PING") == b"+PONG\r\n")
    await add(store, new_job("a"))


async def test_a_claim_of_more_names_than_lua_takes_arguments(store: RedisStore):
    await add(store, *(new_job(f"job-{n}", name=f"name-{n}") for n in range(10_000)))
    assert len(await claim(store, 9_000)) == 9_000


@pytest.mark.parametrize("evicted", [("heads",), ("heads", "waiting:send")])
async def test_heads_that_were_evicted_come_back_with_the_next_job(store: RedisStore, evicted: tuple[str, ...]):
    for id in ("a", "b"):
        await add(store, new_job(id, name="send"))
    await store._executor.execute("UNLINK", *(f"{store._executor.keys.queue(QUEUE)}:{what}" for what in evicted))
    await add(store, new_job("c", name="send"))
    assert await claim(store, 1) == []

    await add(store, new_job("d", name="send"))

    left = ["c", "d"] if "waiting:send" in evicted else ["a", "b", "c", "d"]
    assert [job.id for job in await claim(store, 4)] == left


async def test_a_row_of_another_format_is_refused(store: RedisStore):
    await add(store, new_job("a"))
    await store._executor.execute("SETRANGE", store._executor.keys.queue(QUEUE), "0", struct.pack("<d", 1))

    for call in (store.add([[new_job("b")]]), store.add([new_jobs(2)]), store.claim(claim_request(1))):
        with pytest.raises(StoreCorrupt, match="one of our keys holds something else"):
            await call
    assert await store._executor.execute("HLEN", f"{store._executor.keys.queue(QUEUE)}:jobs") == 1


DAMAGE = {
    "empty": b"",
    "short": struct.pack("<d", 2),
    "of another format": struct.pack("<24d", 1, *range(23)),
    "foreign": b"the session of somebody else, who took our prefix; " * 5,
    "not a number": b"\xff" * 200,
}


@pytest.mark.parametrize("stored", DAMAGE.values(), ids=DAMAGE)
async def test_a_row_that_is_none_of_ours_is_refused_by_whoever_reads_it(store: RedisStore, stored: bytes):
    await add(store, new_job("a"))
    await store._executor.execute("SET", store._executor.keys.queue(QUEUE), stored)

    for call in (store.count(QUEUE), store.settings(QUEUE), store.queues(), store.get(QUEUE, ["a"])):
        with pytest.raises(StoreCorrupt, match="one of our keys holds something else"):
            await call


@pytest.mark.parametrize("stored", DAMAGE.values(), ids=DAMAGE)
async def test_a_job_that_is_none_of_ours_is_refused_by_whoever_reads_it(store: RedisStore, stored: bytes):
    await add(store, new_job("a"), new_job("b"))
    for id in ("a", "b"):
        await store._executor.execute("HSET", f"{store._executor.keys.queue(QUEUE)}:jobs", id, stored)

    for call in (
        store.get(QUEUE, ["a"]),
        store.find(Find(QUEUE, ("waiting",))),
        store.claim(claim_request(1)),
        store.claim(waiting_request()),
    ):
        with pytest.raises(StoreCorrupt, match="one of our keys holds something else"):
            await call


DAMAGED_RECORDS = {
    **DAMAGE,
    "a number": pack(5),
    "without a version": pack(("1", False, "x")),
    "without an end": pack((1, "soon", "x")),
}


@pytest.mark.parametrize("stored", DAMAGED_RECORDS.values(), ids=DAMAGED_RECORDS)
async def test_a_record_that_cannot_be_read_is_named(store: RedisStore, stored: bytes):
    for key in ("a", "b"):
        await store.remember(Record("worker", key, "x"))
    await store._executor.execute("HSET", store._executor.keys.kind("worker"), "b", stored)

    for call in (store.recall("worker"), store.recall("worker", "b")):
        with pytest.raises(StoreCorrupt, match=r"the record 'b' in \{.*\}:records:worker is damaged.*HDEL"):
            await call
    with pytest.raises(StoreCorrupt, match="one of our keys holds something else"):
        await store.remember(Record("worker", "b", "y"), expect=1)

    assert [record.key for record in await store.recall("worker", "a")] == ["a"]


async def test_a_record_that_cannot_be_read_can_be_replaced_and_removed(store: RedisStore):
    await store._executor.execute("HSET", store._executor.keys.kind("worker"), "a", pack(5), "b", pack(5))

    written = await store.remember(Record("worker", "a", "x"))

    assert written.record == Record("worker", "a", "x", 1)
    assert await store.forget("worker", "b")
    assert await store.recall("worker") == [written.record]
