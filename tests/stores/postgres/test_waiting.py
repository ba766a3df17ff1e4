"""Calls that had to wait for somebody who wrote the same rows: they act on what is there now."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from typing import TypeVar

import psycopg
import pytest

from ropeway.store.values import Record
from ropeway.stores.postgres import PostgresStore
from ropeway.stores.postgres.statements import in_schema
from ropeway.stores.postgres.target import Target
from ropeway.testing.arrange import active, read
from ropeway.testing.factories import LOCK, NOW, QUEUE, SECOND, lock_of
from tests.stores.waiting import until

from .conftest import Execute

T = TypeVar("T")


class Other:
    """Somebody else, in a transaction that stays open until a call waits for it."""

    def __init__(self, connection: psycopg.AsyncConnection, schema: str, execute: Execute) -> None:
        self._connection, self._schema, self._execute = connection, schema, execute

    async def run(self, sql: str) -> None:
        await self._connection.execute(in_schema(sql, self._schema).encode())

    async def commit_when_waited_for(self, call: Awaitable[T]) -> T:
        made = asyncio.ensure_future(call)
        me = self._connection.info.backend_pid
        await until(lambda: self._execute(f"SELECT 1 FROM pg_stat_activity WHERE {me} = ANY (pg_blocking_pids(pid))"))
        await self._connection.commit()
        return await made


@pytest.fixture
async def other(url: str, execute: Execute) -> AsyncIterator[Other]:
    target = Target.from_url(url)
    async with await psycopg.AsyncConnection.connect(target.conninfo) as connection:
        yield Other(connection, target.schema, execute)


async def test_a_lock_is_extended_after_an_update_of_its_job(store: PostgresStore, other: Other):
    held = await active(store)
    await other.run(
        f"SELECT ropeway.update('{QUEUE}', ARRAY['{held.id}'], ARRAY['{held.token}'], ARRAY['1'], "
        "NULL, NULL, NULL, NULL)"
    )

    [answer] = await other.commit_when_waited_for(store.renew(QUEUE, [lock_of(held)], LOCK, now=NOW + SECOND))

    job = await read(store, held.id)
    assert (answer.verdict, job.lock_until, job.renewed_at) == ("done", NOW + SECOND + LOCK, NOW + SECOND)
    assert job.progress == "1"


async def test_a_record_is_not_written_over_one_that_is_being_forgotten(store: PostgresStore, other: Other):
    await store.remember(Record("schedule", "s", "1"))
    await other.run("SELECT ropeway.forget('schedule', 's')")

    remembered = await other.commit_when_waited_for(store.remember(Record("schedule", "s", "2"), expect=1))

    assert (remembered.verdict, remembered.record) == ("lost", None)
    assert await store.recall("schedule") == []
