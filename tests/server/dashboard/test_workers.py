"""Workers that are paused and drained from their page."""

from __future__ import annotations

import pytest

from ropeway import Queue, Worker
from ropeway.client.workers import read_orders
from ropeway.worker.maintenance import presence
from tests.server.conftest import until


async def test_a_worker_is_paused_and_drained(store, pages, monkeypatch):
    monkeypatch.setattr(presence, "ORDERS_INTERVAL", 0.05)
    queue = Queue("orders", store=store)
    async with Worker(queue, {"report": print}, name="night-shift") as worker:

        async def shows(*words):
            text = (await pages.get("/workers")).text
            return all(word in text for word in words)

        told = await pages.post(f"/workers/{worker.id}/pause-worker")
        assert "night-shift+was+told+to+pause" in told.headers["location"]
        await until(lambda: shows(">paused<", "resume-worker"))
        assert worker.paused
        await pages.post(f"/workers/{worker.id}/resume-worker")
        await until(lambda: shows("pause-worker"))
        await pages.post(f"/workers/{worker.id}/drain-worker")
        await until(lambda: shows(">draining<"))
    assert worker.drained
    assert (await pages.post(f"/workers/{worker.id}/pause-worker")).status_code == 404


@pytest.mark.parametrize("over", ["pages", "api"])
async def test_a_token_must_reach_all_queues_of_the_worker_that_it_tells(store, visit, make_token, over):
    queues = [Queue(name, store=store) for name in ("mail", "secret")]
    narrow, wide = await make_token("operator", queues=["mail"]), await make_token("operator")
    async with Worker(queues, {"send": print}) as worker, visit() as client:
        path = f"/v1/workers/{worker.id}/pause" if over == "api" else f"/workers/{worker.id}/pause-worker"
        assert (await client.post(path, headers=narrow)).status_code == 403
        assert "pause-worker" not in (await client.get("/workers", headers=narrow)).text
        assert await read_orders(store) == {}
        answer = await client.post(path, headers=wide)
        assert answer.status_code == (202 if over == "api" else 303)
        assert (await read_orders(store))[worker.id].order == "pause"
        assert (await client.post(path.replace(worker.id, "nobody"), headers=wide)).status_code == 404
