from collections.abc import AsyncIterator

import pytest_asyncio

from tests.client.fixtures import make_queue, new_handle, pytest_generate_tests, queue, store, tampered_queue, tampering

from .receiver import Receiver, receiving

__all__ = ["make_queue", "new_handle", "pytest_generate_tests", "queue", "store", "tampered_queue", "tampering"]


@pytest_asyncio.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as one:
        yield one
