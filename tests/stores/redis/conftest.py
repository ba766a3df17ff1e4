"""A server of its own for each test that does something to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import TypeAlias, TypeVar

import pytest

from ropeway.errors import StoreUnavailable
from ropeway.stores.redis import RedisStore
from ropeway.stores.redis.connection import Connection
from tests.patience import PATIENCE
from tests.stores.places import empty_folder
from tests.stores.servers import ServerProcess, new_place, shared_server

StartServer: TypeAlias = Callable[..., ServerProcess]
OpenStore: TypeAlias = Callable[[str], RedisStore]

T = TypeVar("T")


@pytest.fixture
def start_server() -> Iterator[StartServer]:
    """Takes options of the server."""
    with empty_folder() as folder:
        servers: list[ServerProcess] = []

        def start(*options: str, port: int = 0) -> ServerProcess:
            place = folder / str(len(servers))
            place.mkdir()
            server = ServerProcess(place, *options, port=port)
            servers.append(server)
            server.start()
            return server

        yield start
        for server in servers:
            server.kill()


@pytest.fixture
async def open_store() -> AsyncIterator[OpenStore]:
    """Takes a URL; what it made is closed when the test ends."""
    made: list[RedisStore] = []

    def new(url: str) -> RedisStore:
        made.append(RedisStore.from_url(url))
        return made[-1]

    yield new
    for store in made:
        await store.close()


@pytest.fixture
def url() -> str:
    """Of an empty store on the shared server, which this process started by itself."""
    return shared_server().url(new_place().rpartition("prefix=")[2])


@pytest.fixture
def store(open_store: OpenStore, url: str) -> RedisStore:
    return open_store(url)


async def insist(call: Callable[[bool], Awaitable[T]]) -> T:
    """Repeats a call as workers do; it is told whether it is a repeat."""
    async with asyncio.timeout(PATIENCE):
        repeat = False
        while True:
            try:
                return await call(repeat)
            except StoreUnavailable:
                repeat = True
                await asyncio.sleep(0.1)


async def noticed(store: RedisStore) -> None:
    """Waits until the handle knows that its connection has ended."""
    connection = store._executor.resources.here().commands
    assert isinstance(connection, Connection)
    link = connection._link
    assert link is not None
    await link.ended.wait()
