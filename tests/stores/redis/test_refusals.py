"""What a server answers instead of doing what it was asked: waited out, or raised with what to do about it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from ropeway.errors import StoreCorrupt, StoreFull, StoreRefused, StoreUnavailable
from ropeway.store.values import JobUpdate
from ropeway.stores.redis import RedisStore
from ropeway.stores.redis.store import ServerStore
from ropeway.testing.arrange import add, claim, is_gone, read
from ropeway.testing.factories import QUEUE, complete, new_job, new_jobs
from tests.stores.servers import ServerProcess, free_port, shared_cluster
from tests.stores.waiting import until

from .conftest import OpenStore, StartServer, noticed

KEY = f"{{ropeway:{QUEUE}}}"


@pytest.fixture
def server(start_server: StartServer) -> ServerProcess:
    return start_server()


@pytest.fixture
def store(open_store: OpenStore, server: ServerProcess) -> RedisStore:
    return open_store(server.url())


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ropeway.stores.redis.connection.PATIENCE", 0.05)


TROUBLES = {
    # A failover made it a replica.
    "READONLY": (["REPLICAOF 127.0.0.1 1"], ["REPLICAOF NO ONE"]),
    # And one that will not answer without its primary.
    "MASTERDOWN": (["CONFIG SET replica-serve-stale-data no", "REPLICAOF 127.0.0.1 1"], ["REPLICAOF NO ONE"]),
    "NOREPLICAS": (["CONFIG SET min-replicas-to-write 1"], ["CONFIG SET min-replicas-to-write 0"]),
}
"""How a server comes to answer so, and how it is mended."""


def _tell(server: ServerProcess, commands: list[str]) -> None:
    for command in commands:
        assert server.ask(*command.split()) == b"+OK\r\n", command


@pytest.mark.parametrize("code", TROUBLES)
async def test_what_passes_soon_is_waited_out(store: RedisStore, server: ServerProcess, code: str):
    [job] = await add(store, new_job())
    trouble, mended = TROUBLES[code]
    _tell(server, trouble)
    calling = asyncio.create_task(claim(store))
    await _refused_once(server, code)
    _tell(server, mended)

    assert [held.id for held in await calling] == [job.id]


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("code", TROUBLES)
async def test_what_does_not_pass_soon_may_be_asked_again(store: RedisStore, server: ServerProcess, code: str):
    await add(store, new_job("a"))
    trouble, mended = TROUBLES[code]
    _tell(server, trouble)
    with pytest.raises(StoreUnavailable, match=code):
        await claim(store)
    _tell(server, mended)

    assert [held.id for held in await claim(store)] == ["a"]


async def _refused_once(server: ServerProcess, code: str) -> None:
    # Redis 6.2 counts what a script ran into as ERR.
    await until(lambda: re.search(f"errorstat_({code}|ERR):", server.ask("INFO", "errorstats").decode()))


async def test_a_server_that_still_loads_is_waited_for(start_server: StartServer, open_store: OpenStore):
    server = start_server("--key-load-delay", "30000", "--rdbcompression", "no")
    store = open_store(server.url())
    # More than servers load without looking up.
    data = f'"{"x" * 500_000}"'
    await add(store, *new_jobs(10, data=data))
    _tell(server, ["SAVE"])
    server.kill()
    await noticed(store)
    loading = asyncio.create_task(asyncio.to_thread(server.start))

    assert len(await claim(store, 10)) == 10
    await loading
    assert b"errorstat_LOADING:" in server.ask("INFO", "errorstats")


async def test_a_server_whose_script_runs_on_and_on_is_waited_for(store: RedisStore, server: ServerProcess):
    await add(store, new_job("a"))
    _tell(server, ["CONFIG SET lua-time-limit 1"])
    spinning = asyncio.create_task(asyncio.to_thread(server.ask, "EVAL", "while true do end", "0"))
    calling = asyncio.create_task(claim(store))
    await until(lambda: server.ask("SCRIPT", "KILL") == b"+OK\r\n")

    assert [held.id for held in await calling] == ["a"]
    await spinning


async def test_a_server_that_cannot_save_says_so_and_takes_jobs_again(
    start_server: StartServer, open_store: OpenStore, tmp_path: Path
):
    missing = tmp_path / "dumps"
    missing.mkdir()
    server = start_server("--dir", str(missing))
    store = open_store(server.url())
    await add(store, new_job("a"))
    assert server.ask("CONFIG", "SET", "save", "3600 1") == b"+OK\r\n"
    missing.rmdir()
    server.ask("BGSAVE")
    await until(lambda: b"rdb_last_bgsave_status:err" in server.ask("INFO", "persistence"))

    with pytest.raises(StoreFull, match="disk"):
        await claim(store)

    _tell(server, ["CONFIG SET stop-writes-on-bgsave-error no"])
    assert [held.id for held in await claim(store)] == ["a"]


async def test_settling_in_a_full_server_does_not_half_settle(store: RedisStore, server: ServerProcess):
    await add(store, *new_jobs(2))
    [job] = await claim(store)
    _tell(server, ["CONFIG SET maxmemory 1"])
    try:
        settled = [answer.verdict for answer in (await store.settle(QUEUE, [complete(job)])).answers]
    except StoreFull:
        assert (await read(store, job.id)).state == "active"
        settled = []
    _tell(server, ["CONFIG SET maxmemory 0"])

    assert settled or [answer.verdict for answer in (await store.settle(QUEUE, [complete(job)])).answers] == ["done"]
    assert (await read(store, job.id)).state == "completed"
    assert (await store.count(QUEUE))["completed"] == 1


@pytest.mark.parametrize("rule", ["-evalsha -eval", "-hset", "resetkeys ~other*"])
async def test_a_user_without_the_rights_is_told_to_get_them(server: ServerProcess, open_store: OpenStore, rule: str):
    _tell(server, [f"ACL SETUSER mail on >s3cret ~* &* +@all {rule}"])
    store = open_store(server.url().replace("redis://", "redis://mail:s3cret@"))

    with pytest.raises(StoreRefused, match="user, password and their rights"):
        await store.add([[new_job("a")]])

    assert await is_gone(open_store(server.url()), "a")


@pytest.mark.parametrize("way", ["awaited", "here"])
async def test_a_user_without_channels_is_refused_before_anything_is_written(
    server: ServerProcess, open_store: OpenStore, way: str
):
    _tell(server, ["ACL SETUSER mail on >s3cret ~* resetchannels +@all"])
    store = open_store(server.url().replace("redis://", "redis://mail:s3cret@"))

    with pytest.raises(StoreRefused, match="grant the channels"):
        await (store.add([[new_job("a")]]) if way == "awaited" else asyncio.to_thread(add_blocking, store))

    assert await is_gone(open_store(server.url()), "a")
    _tell(server, ["ACL SETUSER mail &*"])
    await add(open_store(server.url().replace("redis://", "redis://mail:s3cret@")), new_job("a"))


def add_blocking(store: object) -> None:
    assert isinstance(store, ServerStore)
    store.add_blocking([[new_job("a")]])


@pytest.mark.parametrize("ending", ["", ":jobs", ":heads", ":events"])
async def test_a_key_that_is_somebody_elses_is_said_to_be(store: RedisStore, server: ServerProcess, ending: str):
    assert server.ask("LPUSH", f"{KEY}{ending}", "mine") == b":1\r\n"

    with pytest.raises(StoreCorrupt, match="prefix"):
        await store.add([[new_job()]])


CALLS: dict[str, tuple[str, Callable[[RedisStore], Awaitable[object]]]] = {
    "log": (":log:job", lambda store: store.log(QUEUE, "job")),
    "clear_log": ("", lambda store: store.clear_log(QUEUE, "job")),
    "publish": (":events", lambda store: store.publish(QUEUE, "imported", "{}")),
    "trim_events": (":events", lambda store: store.trim_events(QUEUE)),
    "count_waiting": (":heads", lambda store: store.count_waiting(QUEUE, [0])),
}
"""A key that each of them needs."""


@pytest.mark.parametrize("verb", CALLS)
async def test_a_key_that_became_somebody_elses_is_said_to_be(store: RedisStore, server: ServerProcess, verb: str):
    ending, call = CALLS[verb]
    await add(store, new_job("job"))
    server.ask("DEL", f"{KEY}{ending}")
    assert server.ask("HSET", f"{KEY}{ending}", "mine", "1") == b":1\r\n"

    with pytest.raises(StoreCorrupt, match="prefix"):
        await call(store)


@pytest.mark.parametrize("key", ["past", "log:job"])
async def test_a_damaged_log_is_said_to_be(store: RedisStore, server: ServerProcess, key: str):
    await add(store, new_job("job"))
    await store.update(QUEUE, [JobUpdate("job", log=("one",))])
    damage = ("HSET", f"{KEY}:past", "job", "some") if key == "past" else ("LSET", f"{KEY}:log:job", "0", "some")
    server.ask(*damage)

    with pytest.raises(StoreCorrupt, match="prefix"):
        await store.log(QUEUE, "job")


async def test_one_server_of_a_cluster_is_said_to_be_one(open_store: OpenStore):
    node = next(node for node in shared_cluster().nodes if node.ask("GET", KEY).startswith(b"-MOVED"))

    with pytest.raises(StoreRefused, match=r"redis\+cluster://"):
        await open_store(node.url()).count(QUEUE)


async def test_a_slot_that_nobody_has_for_a_while_is_waited_for(start_server: StartServer, open_store: OpenStore):
    server = start_server(
        "--cluster-enabled", "yes", "--bind", "127.0.0.1", "--cluster-port", str(free_port()), port=free_port()
    )
    server.ask("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
    await until(lambda: b"cluster_state:ok" in server.ask("CLUSTER", "INFO"))
    store = open_store(f"redis+cluster://127.0.0.1:{server.port}")
    await add(store, new_job("a"))
    slot = server.ask("CLUSTER", "KEYSLOT", KEY)[1:-2].decode()
    _tell(server, [f"CLUSTER DELSLOTS {slot}"])
    calling = asyncio.create_task(claim(store))
    await _refused_once(server, "CLUSTERDOWN")
    _tell(server, [f"CLUSTER ADDSLOTS {slot}"])

    assert [held.id for held in await calling] == ["a"]
