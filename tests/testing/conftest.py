from __future__ import annotations

import pytest

from ropeway import Queue
from ropeway.testing import FakeClock, FakeStore


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def store(clock: FakeClock) -> FakeStore:
    return FakeStore(clock)


@pytest.fixture
def queue(store: FakeStore) -> Queue:
    return Queue("letters", store=store)
