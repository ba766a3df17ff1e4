"""Fixtures of the suite, made from `new_handle`, which the test module of a store defines."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias

import pytest

from ...errors import StoreClosed
from ...store.contract import Store
from ..auditor import AuditedStore

NewHandle: TypeAlias = Callable[[], Store]
"""Answers another handle on the same jobs: none when a test begins, and they outlive every handle."""


@asynccontextmanager
async def audited(new_handle: NewHandle, kind: type[AuditedStore] = AuditedStore) -> AsyncIterator[AuditedStore]:
    """An opened store whose audit_log are checked when all went well."""
    store = kind(new_handle())
    await store.open()
    try:
        yield store
        try:
            await store.check()
        except StoreClosed:
            witness = kind(new_handle(), store.audit_log)
            try:
                await witness.check()
            finally:
                await witness.close()
    finally:
        await store.close()


@pytest.fixture
async def store(new_handle: NewHandle) -> AsyncIterator[AuditedStore]:
    """An opened, empty store whose audit_log are checked when the test has ended."""
    async with audited(new_handle) as store:
        yield store


@pytest.fixture
async def sibling(store: AuditedStore) -> AsyncIterator[AuditedStore]:
    other = store.sibling()
    try:
        yield other
    finally:
        await other.close()
