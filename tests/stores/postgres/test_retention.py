"""Counts of retention that are reckoned up, not counted."""

from __future__ import annotations

import asyncio

from ropeway.job.retention import Retention
from ropeway.stores.postgres import PostgresStore
from ropeway.testing.arrange import add, claim
from ropeway.testing.factories import NOW, QUEUE, complete, new_jobs

from .conftest import Execute, OpenStore

KEPT = 1_200
JOBS = 4_000


async def test_calls_at_once_never_leave_fewer_than_are_to_be_kept(
    store: PostgresStore, open_store: OpenStore, url: str, execute: Execute
):
    await add(store, *new_jobs(JOBS))
    keep = Retention(count=KEPT)

    async def settle_many(handle: PostgresStore) -> None:
        while jobs := await claim(handle, 50):
            await handle.settle(QUEUE, [complete(job, keep=keep) for job in jobs], now=NOW)

    await asyncio.gather(*(settle_many(handle) for handle in (store, open_store(url), open_store(url))))

    [(rows,)] = execute("SELECT count(*) FROM ropeway.finished")
    assert rows == (await store.count(QUEUE))["completed"]
    assert KEPT <= rows < JOBS
