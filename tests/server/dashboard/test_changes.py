"""Word of changes to open pages."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

from ropeway import Queue
from ropeway.errors import StoreUnavailable
from ropeway.server import broker
from ropeway.server.dashboard import dashboard
from ropeway.server.dashboard.application import Dashboard
from ropeway.server.dashboard.changes import CHANGE, MOST_VIEWERS
from ropeway.store.contract import Store
from tests.server.conftest import client_of


async def test_an_open_page_outlives_an_outage_of_the_store(store: Store):
    pages = dashboard(store)
    failed = asyncio.Event()
    found = [[Queue("mail", store=store)]]

    async def queues() -> list[Queue]:
        if found:
            return found.pop()
        failed.set()
        raise StoreUnavailable(store.url, "it is away")

    async with pages.broker, aclosing(pages.changes.follow(queues, None)) as messages, asyncio.timeout(60):
        assert (await anext(messages)).startswith(b"retry:")
        assert await anext(messages) == CHANGE
        await Queue("mail", store=store).add("welcome")
        assert await anext(messages) == CHANGE
        assert failed.is_set()
    assert pages.changes.open == 0


async def test_a_page_too_many_is_refused_before_its_stream_begins(store: Store):
    app = broker(store)
    app.pages = pages = Dashboard(app)
    pages.changes.open = MOST_VIEWERS
    async with client_of(app) as client:
        answer = await client.get("/live")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "10")
