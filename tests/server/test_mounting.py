"""The broker inside another application."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import uvicorn
from fastapi import FastAPI

from ropeway import Queue, Worker
from ropeway.contrib.starlette import lifespan
from ropeway.server import broker
from ropeway.server.serving import Address
from ropeway.store.contract import Store


async def test_it_is_mounted_under_a_prefix_with_a_worker_beside_it(store: Store):
    queue = Queue("q", store=store)

    @queue.task(attempts=7)
    async def double(number: int) -> int:
        return number * 2

    jobs = broker(queue)
    app = FastAPI(lifespan=lifespan(queue, jobs, Worker(queue)))
    app.mount("/jobs", jobs)

    @app.get("/own")
    async def own() -> dict[str, Any]:
        return {"own": True}

    async with served(app) as web:
        assert (await web.get("/own")).json() == {"own": True}
        added = (await web.post("/jobs/v1/queues/q/jobs", json={"type": "double", "payload": {"number": 4}})).json()
        done = await web.get(f"/jobs/v1/queues/q/jobs/{added['id']}/result", params={"wait": 50})
        assert done.json()["result"] == 8
        # Options and checks of the task hold, because the queue knows it.
        assert (await web.get(f"/jobs/v1/queues/q/jobs/{added['id']}")).json()["max_attempts"] == 7
        wrong = await web.post("/jobs/v1/queues/q/jobs", json={"type": "double", "payload": {"number": "four"}})
        assert (wrong.status_code, wrong.json()["error"]) == (422, "InvalidArguments")
        assert (await web.get("/jobs/openapi.json")).json()["servers"] == [{"url": "/jobs"}]
        assert (await web.get("/jobs/v1/nothing")).status_code == 404
        assert (await web.get("/v1/stats")).status_code == 404


class served:  # noqa: N801 - used as a function
    """Runs any application on a free port."""

    def __init__(self, app: Any) -> None:
        config = uvicorn.Config(app, "127.0.0.1", 0, log_config=None, lifespan="on", ws="none")
        self._server = uvicorn.Server(config)
        self._server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]

    async def __aenter__(self) -> httpx.AsyncClient:
        self._task = asyncio.create_task(self._server._serve())
        while not self._server.started:  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.01)
        port = self._server.servers[0].sockets[0].getsockname()[1]
        self._web = httpx.AsyncClient(base_url=Address("127.0.0.1", port).url, timeout=60)
        return self._web

    async def __aexit__(self, *_: object) -> None:
        await self._web.aclose()
        self._server.should_exit = True
        await self._task
