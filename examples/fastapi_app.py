"""A web application that adds jobs and shows what became of them.

    python -m examples.fastapi_app            a visit: it sends itself some requests and prints the answers
    python -m examples.fastapi_app worker     a worker in a process of its own, until Ctrl-C

It needs `pip install fastapi httpx`. A server runs `examples.fastapi_app:app`, with a worker beside the requests, or
`examples.fastapi_app:api`, which leaves the jobs to workers of their own.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

try:
    import httpx
    from fastapi import APIRouter, FastAPI, HTTPException
except ModuleNotFoundError as missing:
    sys.exit(f"{missing.name} is not installed: pip install fastapi httpx")

from ropeway import InvalidMove, Job, JobFailed, JobHandle, Queue, ResultTimeout, Worker

queue = Queue("reports", attempts=3, backoff=1)


async def make_report(job: Job) -> dict[str, Any]:
    for percent in range(0, 100, 25):
        await job.progress(percent)
        await asyncio.sleep(0.01)
    return {"month": job.data["month"], "lines": 42}


def make_worker() -> Worker:
    return Worker(queue, {"make_report": make_report}, concurrency=20)


router = APIRouter()


@router.post("/reports/{month}", status_code=202)
async def ask(month: str) -> dict[str, Any]:
    # The id makes a second request for the same month find the first one's job.
    job = await queue.add("make_report", {"month": month}, id=f"report-{month}")
    return {"id": job.id, "created": job.created}


@router.get("/reports/{month}")
async def show(month: str) -> dict[str, Any]:
    snapshot = await (await find(month)).refresh()
    return {"state": snapshot.state, "progress": snapshot.progress, "result": snapshot.result}


@router.get("/reports/{month}/result")
async def wait(month: str) -> Any:
    try:
        return await (await find(month)).result(timeout="30 seconds")
    except ResultTimeout as late:
        raise HTTPException(504, f"it is {late.state}") from None
    except JobFailed as failed:
        raise HTTPException(500, failed.reason) from None


@router.delete("/reports/{month}")
async def cancel(month: str) -> dict[str, Any]:
    try:
        return {"cancelled": await (await find(month)).cancel("by its reader")}
    except InvalidMove as finished:
        raise HTTPException(409, f"it is {finished.state}") from None


async def find(month: str) -> JobHandle:
    job = await queue.get(f"report-{month}")
    if job is None:
        raise HTTPException(404, "nobody asked for this report")
    return job


@asynccontextmanager
async def without_worker(_: FastAPI) -> AsyncIterator[None]:
    async with queue:
        yield


@asynccontextmanager
async def with_worker(_: FastAPI) -> AsyncIterator[None]:
    async with queue, make_worker():
        yield


app = FastAPI(lifespan=with_worker)
app.include_router(router)
api = FastAPI(lifespan=without_worker)
api.include_router(router)


async def visit(app: FastAPI) -> None:
    transport = httpx.ASGITransport(app)
    async with app.router.lifespan_context(app), httpx.AsyncClient(transport=transport, base_url="http://shop") as web:
        for method, path in (
            ("GET", "/reports/2026-05"),
            ("POST", "/reports/2026-05"),
            ("POST", "/reports/2026-05"),
            ("GET", "/reports/2026-05/result"),
            ("GET", "/reports/2026-05"),
            ("DELETE", "/reports/2026-05"),
        ):
            answer = await web.request(method, path)
            print(method, path, answer.status_code, answer.json())


if __name__ == "__main__":
    asyncio.run(make_worker().run() if "worker" in sys.argv else visit(app))
