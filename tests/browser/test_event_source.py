"""Server-sent events as a browser reads them, on a server that ends and comes back."""

from __future__ import annotations

import asyncio

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Route

from ropeway.client.sse import HEADERS, MEDIA_TYPE, RESUMES_AT, event_stream
from ropeway.server import broker
from ropeway.server.serving import Address, serving
from tests.patience import PATIENCE

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.xdist_group("browser")]

FOLLOW = """() => {
  window.seen = [];
  const source = new EventSource("/events");
  source.addEventListener("added", (event) => window.seen.push(JSON.parse(event.data).job_id));
  return new Promise((resolve) => source.addEventListener("open", () => resolve(true), { once: true }));
}"""


async def test_it_resumes_after_a_cut(site, browser):
    async def show(_: Request) -> Response:
        return HTMLResponse("<title>events</title>")

    async def events(request: Request) -> Response:
        messages = event_stream(site.queue, after=request.headers.get(RESUMES_AT, "now"))
        return StreamingResponse(messages, media_type=MEDIA_TYPE, headers=dict(HEADERS))

    def server():
        app = broker(site.store)
        app.pages = Starlette(routes=[Route("/", show), Route("/events", events)])
        return app

    async with asyncio.timeout(PATIENCE):
        page = await browser.new_page()
        async with serving(server(), Address("127.0.0.1", 0), timeout_graceful_shutdown=0) as address:
            await page.goto(address.url)
            await page.evaluate(FOLLOW)
            first = await site.queue.add_many(["welcome"] * 3)
            await page.wait_for_function("seen.length === 3")
        second = await site.queue.add_many(["welcome"] * 3)
        async with serving(server(), address, timeout_graceful_shutdown=0):
            await page.wait_for_function("seen.length >= 6", timeout=60_000)
            assert await page.evaluate("seen") == [job.id for job in [*first, *second]]
            await page.close()
