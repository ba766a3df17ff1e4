"""One browser for all tests of a file, and a dashboard: on a store of its own for each, or filled and shared."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
from playwright.async_api import Browser, ConsoleMessage, Dialog, Page, Request, async_playwright

from ropeway import Queue, connect
from ropeway.server import broker
from ropeway.server.dashboard.application import Dashboard, Options
from ropeway.server.serving import Address, serving
from ropeway.store.contract import Store
from tests.server.dashboard.filling import Filled, filled

from .install import find_browser

SWITCHES = ["--no-sandbox", "--no-zygote", "--in-process-gpu", "--disable-webgl", "--font-render-hinting=none"]


class Site(NamedTuple):
    url: str
    store: Store
    queue: Queue
    dashboard: Dashboard


Open = Callable[..., AbstractAsyncContextManager[Page]]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    found = find_browser()
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=found.executable, args=SWITCHES, env={**os.environ, **found.environment}
        )
        yield browser
        await browser.close()


@asynccontextmanager
async def served(folder: Path) -> AsyncIterator[Site]:
    store = connect(f"sqlite:///{folder}/jobs.db")
    app = broker(store)
    app.pages = dashboard = Dashboard(app, Options(environment="test"))
    async with serving(app, Address("127.0.0.1", 0)) as address:
        yield Site(address.url, store, Queue("mail", store=store), dashboard)
    await store.close()


@pytest_asyncio.fixture(loop_scope="module")
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with served(tmp_path) as site:
        yield site


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def full_site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Site, Filled]]:
    """With jobs of every kind, for tests that only look."""
    async with served(tmp_path_factory.mktemp("full")) as site, filled(site.store) as found:
        yield site, found


@pytest.fixture
def open_page(browser: Browser, site: Site) -> Open:
    """Opens an address or a path. Then nothing was written to the console, no alert shown, and no other host asked."""

    @asynccontextmanager
    async def start(address: str, **options: Any) -> AsyncIterator[Page]:
        url = address if "://" in address else site.url + address
        context = await browser.new_context(**options)
        page = await context.new_page()
        problems: list[str] = []

        def note(message: ConsoleMessage) -> None:
            if message.type in ("error", "warning"):
                problems.append(message.text)

        def ask(request: Request) -> None:
            if urlsplit(request.url).netloc != urlsplit(url).netloc:
                problems.append(f"asked {request.url}")

        async def refuse(dialog: Dialog) -> None:
            problems.append(f"showed {dialog.message}")
            await dialog.dismiss()

        page.on("console", note)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", ask)
        page.on("dialog", refuse)
        await page.goto(url)
        try:
            yield page
        finally:
            await context.close()
        assert problems == []

    return start
