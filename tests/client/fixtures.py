"""What tests of queues and workers take. Each has its store's books checked; `depth.py` says which stores."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import TypeAlias, cast

import pytest

from ropeway import Queue
from ropeway.store.commands import Tick
from ropeway.store.contract import Store
from ropeway.testing.auditor import AuditedStore
from ropeway.testing.conformance.fixtures import NewHandle, audited
from ropeway.testing.factories import QUEUE
from tests.depth import give_stores, stores_of_a_user
from tests.stores.places import EVERYWHERE, empty_folder

from .tampering import Tampering, tampered

MakeQueue: TypeAlias = Callable[..., Queue]
"""Takes a name and a store, both of which may be left out, and the defaults of the queue's jobs."""


class Audited(AuditedStore):
    """Reads the stream when it checks, and not at each tick: a worker ticks in a thread of its own."""

    reads_before = tuple(command for command in AuditedStore.reads_before if command is not Tick)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    give_stores(metafunc, stores_of_a_user(metafunc))


@pytest.fixture
def new_handle(request: pytest.FixtureRequest) -> Iterator[NewHandle]:
    with empty_folder() as folder:
        yield EVERYWHERE[cast(str, request.param)](folder)


@pytest.fixture
async def store(new_handle: NewHandle) -> AsyncIterator[Store]:
    """An opened, empty store whose books are checked when the test has ended."""
    async with audited(new_handle, Audited) as store:
        yield store


@pytest.fixture
def tampering() -> Tampering:
    return Tampering()


@pytest.fixture
def tampered_queue(make_queue: MakeQueue, store: Store, tampering: Tampering) -> Queue:
    """One whose calls to the store the test can count, hold up and spoil."""
    return make_queue(store=tampered(store, tampering))


@pytest.fixture
def make_queue(store: Store) -> MakeQueue:
    def make(name: str = QUEUE, store: Store = store, **options: object) -> Queue:
        return Queue(name, store=store, **options)  # type: ignore[arg-type]  # whatever the test gives

    return make


@pytest.fixture
def queue(make_queue: MakeQueue) -> Queue:
    return make_queue()
