"""Every test that takes `new_handle`, or `store`, runs once on each store."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import TypeAlias, cast

import pytest

from ropeway.testing.conformance.fixtures import NewHandle, sibling, store
from tests.depth import give_stores, stores_of_the_suite

from .brokers import BrokerProcess
from .databases import DatabaseProcess
from .network import Proxy, proxied
from .places import EVERYWHERE, empty_folder
from .servers import ServerProcess

__all__ = ["new_handle", "sibling", "store"]

AnyServer: TypeAlias = ServerProcess | DatabaseProcess | BrokerProcess

SERVERS = {"redis": ServerProcess, "postgres": DatabaseProcess, "remote": BrokerProcess}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    give_stores(metafunc, stores_of_the_suite(metafunc))


@pytest.fixture
def new_handle(request: pytest.FixtureRequest) -> Iterator[NewHandle]:
    with empty_folder() as folder:
        yield EVERYWHERE[cast(str, request.param)](folder)


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest) -> Iterator[AnyServer]:
    """One of its own for each test that does something to it."""
    with empty_folder() as folder:
        # A database may have to run as another user.
        folder.chmod(0o755)
        place = folder / "server"
        place.mkdir()
        server = SERVERS[cast(str, request.param)](place)
        server.start()
        yield server
        server.kill()


@pytest.fixture
async def proxy(server: AnyServer) -> AsyncIterator[Proxy]:
    async with proxied(server) as proxy:
        yield proxy
