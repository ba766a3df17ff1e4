"""Workers as others see them."""

from __future__ import annotations

import msgspec
import pytest

from ropeway import Queue
from ropeway.client.workers import WORKER_RECORDS, WorkerInfo, read_workers
from ropeway.store.contract import Store
from ropeway.store.values import Record

pytestmark = pytest.mark.every_store


@pytest.mark.parametrize("value", ['{"id":"b","new_schema":1}', "not JSON at all", '{"id": 1}'])
async def test_a_worker_that_cannot_be_read_hides_no_other(queue: Queue, store: Store, value: str):
    readable = WorkerInfo("a", "web-1", "host", 1, (queue.name,), {queue.name: None}, 10, 0, 0)
    await store.remember(Record(WORKER_RECORDS, "a", msgspec.json.encode(readable).decode()))
    await store.remember(Record(WORKER_RECORDS, "b", value))

    assert await read_workers(store) == [readable]
    assert await queue.workers() == [readable]
