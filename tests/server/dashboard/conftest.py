"""Dashboards on real sockets, with a browser's headers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from ropeway.server import broker
from ropeway.server.dashboard.application import Dashboard, Options
from ropeway.store.contract import Store
from tests.server.conftest import Client, client_of

Visit = Callable[..., AbstractAsyncContextManager[Client]]
SAME_SITE = {"sec-fetch-site": "same-origin"}


@pytest.fixture
def visit(store: Store) -> Visit:
    """Takes the options of a dashboard; gives a client that asks as its own pages do."""

    @asynccontextmanager
    async def start(headers: dict[str, str] = SAME_SITE, **options: Any) -> AsyncIterator[Client]:
        app = broker(store)
        app.pages = Dashboard(app, Options(**options))
        async with client_of(app, headers=headers) as client:
            yield client

    return start


@pytest.fixture
async def pages(visit: Visit) -> AsyncIterator[Client]:
    async with visit() as client:
        yield client
