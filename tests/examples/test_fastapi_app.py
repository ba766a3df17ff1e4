"""The FastAPI example, by real requests."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
from fastapi import FastAPI

from tests.patience import PATIENCE

from .conftest import Load, Start


@asynccontextmanager
async def client(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app)
    async with app.router.lifespan_context(app), httpx.AsyncClient(transport=transport, base_url="http://shop") as web:
        yield web


async def test_a_report_is_made_beside_the_requests(load: Load):
    async with client(load("fastapi_app").app) as web:
        assert (await web.post("/reports/2026-05")).json() == {"id": "report-2026-05", "created": True}
        assert (await web.post("/reports/2026-05")).json()["created"] is False
        assert (await web.get("/reports/2026-05/result")).json() == {"month": "2026-05", "lines": 42}
        assert (await web.get("/reports/2026-05")).json()["state"] == "completed"
        assert (await web.delete("/reports/2026-05")).status_code == 409


async def test_a_report_is_made_by_a_worker_in_another_process(load: Load, start: Start):
    worker = start("fastapi_app", "worker")
    async with client(load("fastapi_app").api) as web:
        await web.post("/reports/2026-06")
        assert (await web.get("/reports/2026-06/result")).json()["month"] == "2026-06"
    worker.send_signal(signal.SIGTERM)
    _, errors = worker.communicate(timeout=PATIENCE)
    assert worker.returncode == 0, errors


async def test_a_report_that_waits_can_be_cancelled(load: Load):
    async with client(load("fastapi_app").api) as web:
        await web.post("/reports/2026-07")
        assert (await web.delete("/reports/2026-07")).json() == {"cancelled": True}
        assert (await web.get("/reports/2026-07")).json()["state"] == "cancelled"


async def test_a_report_that_nobody_asked_for_is_not_found(load: Load):
    async with client(load("fastapi_app").api) as web:
        assert (await web.get("/reports/2026-08")).status_code == 404
