"""A client of redis-py instead of a URL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import redis
import redis.asyncio
import redis.asyncio.sentinel
import redis.sentinel

from ropeway import Queue
from ropeway.errors import InvalidOption
from ropeway.store.contract import Store
from ropeway.store.url import connect
from ropeway.stores.redis.clients import target_of
from ropeway.testing.arrange import add, read
from ropeway.testing.factories import QUEUE, new_job
from tests.stores.servers import SentinelProcess, ServerProcess, free_port, shared_cluster

from .conftest import StartServer


@pytest.fixture
def server(start_server: StartServer) -> ServerProcess:
    return start_server(port=free_port())


async def _use(store: Store, queue: str = QUEUE) -> None:
    """Adds a job, reads it, and closes the store."""
    await add(store, new_job("a", queue=queue))
    assert (await read(store, "a", queue)).state == "waiting"
    await store.close()


@pytest.mark.parametrize("decodes", [False, True])
@pytest.mark.parametrize("kind", [redis.Redis, redis.asyncio.Redis])
async def test_a_client_can_be_given_instead_of_a_url(server: ServerProcess, kind: type, decodes: bool):
    client = kind(unix_socket_path=str(server.path), db=3, decode_responses=decodes)
    await _use(connect(client))

    with redis.Redis("127.0.0.1", server.port, db=3) as other:
        assert other.exists("{ropeway:letters}") == 1


async def test_closing_the_store_leaves_the_client_alone(server: ServerProcess):
    with redis.Redis(unix_socket_path=str(server.path)) as client:
        client.set("mine", "1")
        before = client.client_id()
        await _use(connect(client))

        assert client.get("mine") == b"1"
        assert client.client_id() == before, "it still has its connection"


async def test_closing_the_store_leaves_an_asyncio_client_alone(server: ServerProcess):
    async with redis.asyncio.Redis(port=server.port, single_connection_client=True) as client:
        before = await client.client_id()
        await _use(connect(client))

        assert await client.client_id() == before, "it still has its connection"


async def test_a_queue_takes_a_store_of_a_client_and_leaves_it_open(server: ServerProcess):
    store = connect(redis.Redis(port=server.port))
    queue = Queue("letters", store=store)
    await queue.add("send", 1)
    await queue.close()

    assert (await store.count("letters"))["waiting"] == 1
    await store.close()


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_client_of_a_cluster_can_be_given(is_async: bool):
    cluster = shared_cluster()
    client: Any
    if is_async:
        client = redis.asyncio.RedisCluster("127.0.0.1", cluster.nodes[0].port)
    else:
        client = redis.RedisCluster("127.0.0.1", cluster.nodes[0].port)
    target = target_of(client)
    assert (target.kind, target.host) == ("cluster", "127.0.0.1")
    for queue in ("one", "two", "three"):
        await _use(connect(client), f"of-clients-{queue}-{is_async}")

    if is_async:
        assert await client.ping(target_nodes="primaries")
        await client.aclose()
    else:
        assert client.ping(target_nodes="primaries")
        client.close()


@pytest.mark.parametrize("sentinels", [redis.sentinel.Sentinel, redis.asyncio.sentinel.Sentinel])
async def test_a_client_of_sentinels_can_be_given(server: ServerProcess, tmp_path: Path, sentinels: type):
    sentinel = SentinelProcess(tmp_path, server)
    sentinel.start()
    try:
        client = sentinels([("127.0.0.1", sentinel.port)]).master_for("main", db=2)
        await _use(connect(client))

        assert target_of(client).url == f"redis+sentinel://127.0.0.1:{sentinel.port}/main/2"
        with redis.Redis("127.0.0.1", server.port, db=2) as other:
            assert other.exists("{ropeway:letters}") == 1
    finally:
        sentinel.kill()


def test_a_client_of_replicas_is_refused():
    with pytest.raises(InvalidOption, match="master_for"):
        connect(redis.sentinel.Sentinel([("127.0.0.1", 1)]).slave_for("main"))


@pytest.mark.parametrize("kind", [redis.Redis, redis.asyncio.Redis])
def test_it_connects_as_the_client_does(kind: type):
    files = {"ssl_ca_certs": "ca.pem", "ssl_certfile": "mine.pem", "ssl_keyfile": "mine.key"}
    client = kind(host="jobs.example", port=6380, db=2, username="me", password="s3cret", ssl=True, **files)

    target = target_of(client)

    assert (target.host, target.port, target.database, target.uses_tls) == ("jobs.example", 6380, 2, True)
    assert (target.username, target.password) == ("me", "s3cret")
    assert (target.ca_file, target.cert_file, target.key_file) == ("ca.pem", "mine.pem", "mine.key")
    assert target.url == "rediss://jobs.example:6380/2"


def test_it_connects_to_a_cluster_as_the_client_does():
    client = redis.asyncio.RedisCluster("jobs.example", 7000, username="me", password="s3cret", ssl=True)

    target = target_of(client)

    assert (target.seeds, target.uses_tls) == ((("jobs.example", 7000),), True)
    assert (target.username, target.password) == ("me", "s3cret")
    assert "s3cret" not in target.url


def test_a_client_that_makes_its_own_passwords_is_refused():
    class Provider(redis.CredentialProvider):
        def get_credentials(self) -> tuple[str]:
            return ("s3cret",)

    with pytest.raises(InvalidOption, match="plain password"):
        connect(redis.Redis(credential_provider=Provider()))


@pytest.mark.parametrize("given", [object(), 5, ["redis://"]])
def test_whatever_else_is_given_is_refused(given: object):
    with pytest.raises(InvalidOption):
        connect(given)
