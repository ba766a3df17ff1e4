"""What the suite's tests take, made from `new_handle`, which is yours to define."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import TypeAlias

import pytest

from ...store.contract import Store
from ..auditor import AuditedStore

NewHandle: TypeAlias = Callable[[], Store]
"""Answers another handle on the same jobs: none when a test begins, and they outlive every handle."""


@pytest.fixture
async def store(new_handle: NewHandle) -> AsyncIterator[AuditedStore]:
    """An opened, empty store whose books are checked when the test has ended."""
    audited = AuditedStore(new_handle())
    await audited.open()
    try:
        yield audited
        # Not through its own handle: a test may have closed it.
        witness = AuditedStore(new_handle(), audited.books)
        try:
            await witness.check()
        finally:
            await witness.close()
    finally:
        await audited.close()


@pytest.fixture
async def sibling(store: AuditedStore) -> AsyncIterator[AuditedStore]:
    other = store.sibling()
    try:
        yield other
    finally:
        await other.close()
