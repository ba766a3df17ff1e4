"""Here `store` is a memory store of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from ropeway.stores.memory import MemoryStore

from .audit import audit


@pytest.fixture
async def store() -> AsyncIterator[MemoryStore]:
    handle = MemoryStore.from_url("memory://")
    sibling = handle.sibling()
    yield handle
    audit(sibling)
    await sibling.close()
    await handle.close()
