"""Scenarios run on the stores that processes can share: all of them, or SQLite where the store is not the subject."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from ropeway import Queue
from tests.depth import is_deep, runs_everywhere
from tests.stores.brokers import broker_place
from tests.stores.databases import new_database_place
from tests.stores.servers import new_place

from .chronicle import Chronicle
from .harness import Fleet, Gate

SHARED_STORES: Final[dict[str, Callable[[Path], str]]] = {
    "sqlite": lambda folder: f"sqlite:///{folder}/ropeway.db",
    "redis": lambda _: new_place(),
    "postgres": lambda _: new_database_place(),
    "remote": lambda folder: broker_place(f"sqlite:///{folder}/ropeway.db"),
}
"""The URL of a new and empty store, given a folder of its own."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "place" in metafunc.fixturenames:
        everywhere = [place for place in SHARED_STORES if place != "remote" or is_deep(metafunc.config)]
        metafunc.parametrize("place", everywhere if runs_everywhere(metafunc) else ["sqlite"])


@pytest.fixture
def url(place: str, tmp_path: Path) -> str:
    return SHARED_STORES[place](tmp_path)


@pytest.fixture
async def queue(url: str) -> AsyncIterator[Queue]:
    queue = Queue("letters", url)
    yield queue
    await queue.close()


@pytest.fixture
def fleet(url: str, queue: Queue, tmp_path: Path) -> Iterator[Fleet]:
    fleet = Fleet(url, queue.name, tmp_path)
    yield fleet
    fleet.close()


@pytest.fixture
def chronicle(queue: Queue) -> Chronicle:
    return Chronicle(queue)


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    return Gate(tmp_path / "gate")


def pytest_itemcollected(item: pytest.Item) -> None:
    """One process runs all scenarios, one after the other: they measure times, and keep the machine busy."""
    item.add_marker(pytest.mark.xdist_group("scenarios"))
