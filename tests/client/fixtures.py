"""What tests of queues and workers take. Each runs once on every store, and has the store's books checked."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TypeAlias, cast

import pytest

from ropeway import Queue
from ropeway.store.commands import Tick
from ropeway.store.contract import Store
from ropeway.testing.auditor import AuditedStore
from ropeway.testing.conformance.fixtures import NewHandle, audited
from ropeway.testing.factories import QUEUE
from tests.stores.places import PLACES

from .tampering import Tampering, tampered

MakeQueue: TypeAlias = Callable[..., Queue]
"""Takes a name and a store, both of which may be left out, and the defaults of the queue's jobs."""


class Audited(AuditedStore):
    """Reads the stream when it checks, and not at each tick: a worker ticks in a thread of its own."""

    reads_before = tuple(command for command in AuditedStore.reads_before if command is not Tick)


@pytest.fixture(params=PLACES)
def new_handle(request: pytest.FixtureRequest, tmp_path: Path) -> NewHandle:
    return PLACES[cast(str, request.param)](tmp_path)


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
