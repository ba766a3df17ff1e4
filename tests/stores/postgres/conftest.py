"""A schema of its own for each test, and a server of its own for each that does something to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import psycopg
import pytest

from ropeway.stores.postgres import PostgresStore
from ropeway.stores.postgres.statements import in_schema
from ropeway.stores.postgres.target import Target
from tests.stores.databases import DatabaseProcess, new_database_place
from tests.stores.network import Proxy, proxied
from tests.stores.places import empty_folder
from tests.stores.waiting import until

T = TypeVar("T")

StartDatabase: TypeAlias = Callable[..., DatabaseProcess]
OpenStore: TypeAlias = Callable[[str], PostgresStore]
Execute: TypeAlias = Callable[[str], list[tuple[Any, ...]]]


@pytest.fixture
def start_database() -> Iterator[StartDatabase]:
    """Takes a port and options of the server."""
    with empty_folder() as folder:
        servers: list[DatabaseProcess] = []

        def start(port: int = 0, **options: str) -> DatabaseProcess:
            # A Unix socket's path must be short.
            place = Path(folder) / str(len(servers))
            place.mkdir()
            folder.chmod(0o755)
            server = DatabaseProcess(place, port, **options)
            servers.append(server)
            server.start()
            return server

        yield start
        for server in servers:
            server.kill()


@pytest.fixture
def server(start_database: StartDatabase) -> DatabaseProcess:
    return start_database()


@pytest.fixture
async def proxy(server: DatabaseProcess) -> AsyncIterator[Proxy]:
    async with proxied(server) as proxy:
        yield proxy


@pytest.fixture
async def open_store() -> AsyncIterator[OpenStore]:
    """Takes a URL; what it made is closed when the test ends."""
    made: list[PostgresStore] = []

    def new(url: str) -> PostgresStore:
        made.append(PostgresStore.from_url(url))
        return made[-1]

    yield new
    for store in made:
        await store.close()


@pytest.fixture
def url() -> str:
    """Of an empty store."""
    return new_database_place()


@pytest.fixture
def store(open_store: OpenStore, url: str) -> PostgresStore:
    return open_store(url)


@pytest.fixture
def execute(url: str) -> Execute:
    """Runs SQL beside the store; `ropeway.` is its schema."""
    target = Target.from_url(url)

    def run(sql: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(target.conninfo, autocommit=True) as connection:
            cursor = connection.execute(in_schema(sql, target.schema).encode())
            return cursor.fetchall() if cursor.description else []

    return run


class Other:
    """Somebody else, in a transaction that stays open until a call waits for it."""

    def __init__(self, connection: psycopg.AsyncConnection, schema: str, execute: Execute) -> None:
        self.connection, self._schema, self._execute = connection, schema, execute

    async def run(self, sql: str) -> None:
        await self.connection.execute(in_schema(sql, self._schema).encode())

    async def ask(self, sql: str) -> Any:
        """The only value of the only row."""
        cursor = await self.connection.execute(in_schema(sql, self._schema).encode())
        row = await cursor.fetchone()
        assert row is not None
        return row[0]

    async def commit_when_waited_for(self, call: Awaitable[T]) -> T:
        made = asyncio.ensure_future(call)
        me = self.connection.info.backend_pid
        await until(lambda: self._execute(f"SELECT 1 FROM pg_stat_activity WHERE {me} = ANY (pg_blocking_pids(pid))"))
        await self.connection.commit()
        return await made


@pytest.fixture
async def other(url: str, execute: Execute) -> AsyncIterator[Other]:
    target = Target.from_url(url)
    async with await psycopg.AsyncConnection.connect(target.conninfo) as connection:
        yield Other(connection, target.schema, execute)


async def noticed(store: PostgresStore) -> None:
    """Waits until the handle knows that its connections have ended."""
    for link in store._executor.resources().pool._links:
        await link.ended.wait()


async def connected(store: PostgresStore) -> None:
    """Opens all connections of the handle: one that is on its way would outlive what is done to the others."""
    await store._executor.resources().pool.warm_up()
