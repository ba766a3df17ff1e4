"""Brokers on real sockets of this machine, on an audited store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import httpx
import pytest

from ropeway.server import Broker, broker
from ropeway.server.serving import Address, serving
from ropeway.server.tokens import create_token
from ropeway.store.contract import Store
from tests.client.fixtures import new_handle, pytest_generate_tests, store
from tests.patience import PATIENCE

__all__ = ["new_handle", "pytest_generate_tests", "store"]

Client = httpx.AsyncClient
Serve = Callable[..., AbstractAsyncContextManager[Client]]
"""Takes the arguments of `broker`; gives a client whose requests go over the network."""
MakeToken = Callable[..., Any]


@asynccontextmanager
async def client_of(app: Broker, root_path: str = "", **options: Any) -> AsyncIterator[Client]:
    async with (
        serving(app, Address("127.0.0.1", 0), root_path=root_path) as address,
        httpx.AsyncClient(base_url=address.url, timeout=60, **options) as client,
    ):
        yield client


@pytest.fixture
def serve(store: Store) -> Serve:
    def start(**options: Any) -> AbstractAsyncContextManager[Client]:
        return client_of(broker(store, **options))

    return start


@pytest.fixture
async def web(serve: Serve) -> AsyncIterator[Client]:
    """A broker without tokens, called from its own machine."""
    async with serve() as client:
        yield client


@pytest.fixture
def make_token(store: Store) -> MakeToken:
    """Makes a token; answers the header that carries it."""

    async def make(*roles: Any, queues: Any = None, **more: Any) -> dict[str, str]:
        text, _ = await create_token(store, roles, queues=queues, **more)
        return {"authorization": f"Bearer {text}"}

    return make


async def until(look: Callable[[], Any]) -> Any:
    """Asks again until the answer is true: for what happens beside the requests, as in the audit."""
    async with asyncio.timeout(PATIENCE):
        while not (found := await look()):  # noqa: ASYNC110 - the other side is a server
            await asyncio.sleep(0.02)
    return found
