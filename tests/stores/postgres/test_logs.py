"""Logs that several handles write, clear and read at the same time."""

from __future__ import annotations

import asyncio

from ropeway.store.values import Answer, JobUpdate
from ropeway.stores.postgres import PostgresStore
from ropeway.testing.arrange import add
from ropeway.testing.factories import QUEUE, new_job

from .conftest import OpenStore

LINES = 60


async def test_lines_keep_their_numbers_while_others_clear_the_log(
    store: PostgresStore, open_store: OpenStore, url: str
):
    await add(store, new_job("a"))
    writer, clearer = open_store(url), open_store(url)

    async def write() -> None:
        for number in range(1, LINES + 1):
            await writer.update(QUEUE, [JobUpdate("a", log=(str(number),))])

    async def clear() -> None:
        for _ in range(LINES):
            assert await clearer.clear_log(QUEUE, "a", keep=3) == Answer("done", "waiting")

    async def read() -> None:
        for _ in range(LINES):
            page = await store.log(QUEUE, "a", limit=LINES)
            assert page is not None
            numbers = [int(line.text) for line in page.lines]
            # All from the oldest that is kept to the newest: one moment.
            assert numbers == [*range(page.newest - len(numbers) + 1, page.newest + 1)]

    await asyncio.gather(write(), clear(), read())

    page = await store.log(QUEUE, "a", newest_first=True, limit=1)
    assert page is not None
    assert (page.newest, page.lines[0].text) == (LINES, str(LINES))
