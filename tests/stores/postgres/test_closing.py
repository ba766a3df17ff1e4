"""Handles that are closed while calls are under way."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psycopg
import pytest

from ropeway.errors import StoreClosed, StoreUnavailable
from ropeway.store.values import Counts
from ropeway.stores.postgres import PostgresStore
from ropeway.testing.arrange import add
from ropeway.testing.factories import QUEUE, new_job
from tests.stores.waiting import until

from .conftest import Execute, OpenStore


async def test_calls_that_wait_for_their_turn_are_told_and_open_nothing_anew(store: PostgresStore, execute: Execute):
    await add(store, new_job())
    pool = store._executor.resources().pool
    with psycopg.connect(store._target.conninfo) as other:
        other.execute(f"LOCK TABLE {store._target.schema}.queue".encode())
        held = f"SELECT 1 FROM pg_stat_activity WHERE {other.info.backend_pid} = ANY (pg_blocking_pids(pid))"
        calls = [asyncio.create_task(store.count(QUEUE)) for _ in range(6)]
        await until(lambda: execute(held))

        await store.close()
        told = await asyncio.gather(*calls, return_exceptions=True)

    assert {type(error) for error in told} == {StoreUnavailable, StoreClosed}
    assert pool._links == []


@asynccontextmanager
async def call_to_a_silent_server(store_at: OpenStore) -> AsyncIterator[tuple[PostgresStore, asyncio.Task[Counts]]]:
    """A store, and a call of it that waits for the connection."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.setblocking(False)
        store = store_at(f"postgresql://nobody@127.0.0.1:{silent.getsockname()[1]}/nothing?sslmode=disable")
        call = asyncio.create_task(store.count(QUEUE))
        connection, _ = await asyncio.get_running_loop().sock_accept(silent)
        with connection:
            yield store, call


async def test_a_call_that_waits_for_the_connection_is_told(open_store: OpenStore):
    async with call_to_a_silent_server(open_store) as (store, call):
        await store.close()

        with pytest.raises(StoreClosed):
            await call


async def test_one_that_was_cancelled_itself_is_cancelled(open_store: OpenStore):
    async with call_to_a_silent_server(open_store) as (store, call):
        call.cancel()
        await store.close()

        with pytest.raises(asyncio.CancelledError):
            await call
