"""A client of redis-py instead of a URL."""

from __future__ import annotations

import pytest
import redis
import redis.asyncio

from ropeway import Queue
from ropeway.errors import InvalidOption
from ropeway.store.url import connect
from ropeway.stores.redis.target import Target

from .conftest import StartServer


@pytest.mark.parametrize("kind", [redis.Redis, redis.asyncio.Redis])
async def test_a_client_can_be_given_instead_of_a_url(start_server: StartServer, kind: type):
    server = start_server()
    client = kind(unix_socket_path=str(server.path), db=3)
    store = connect(client)
    queue = Queue("letters", store=store)

    job = await queue.add("send", 1)

    assert await job.state() == "waiting"
    await store.close()
    assert client.connection_pool is not None
    other = redis.Redis(unix_socket_path=str(server.path), db=3)
    assert other.exists("{ropeway:letters}") == 1
    other.close()


async def test_closing_the_store_leaves_the_client_alone(start_server: StartServer):
    server = start_server()
    client = redis.Redis(unix_socket_path=str(server.path))
    client.set("mine", "1")
    store = connect(client)
    await store.clock()

    await store.close()

    assert client.get("mine") == b"1"
    client.close()


def test_it_connects_as_the_client_does():
    client = redis.Redis("jobs.example", 6380, 2, username="me", password="s3cret", ssl=True)

    target = Target.from_client(client)

    assert (target.host, target.port, target.database, target.uses_tls) == ("jobs.example", 6380, 2, True)
    assert (target.username, target.password) == ("me", "s3cret")
    assert "s3cret" not in target.url


@pytest.mark.parametrize("given", [object(), 5, ["redis://"]])
def test_whatever_else_is_given_is_refused(given: object):
    with pytest.raises(InvalidOption):
        connect(given)
