"""Draws docs/images/dashboard*.png: pages of a shop at work. `make picture` calls it."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path
from typing import Final, Literal
from unittest.mock import patch

from playwright.async_api import async_playwright

from ropeway import connect
from ropeway.server import broker
from ropeway.server.dashboard.application import Dashboard, Options
from ropeway.server.serving import Address, serving

from .conftest import SWITCHES
from .demo import demo
from .install import find_browser

FOLDER: Final = Path(__file__).parents[2] / "docs" / "images"
WIDTH: Final = 1180
LARGEST: Final = 150_000


async def draw() -> None:
    store = connect("memory://shop")
    app = broker(store)
    app.pages = Dashboard(app, Options(environment="production"))
    found = find_browser()
    async with (
        demo(store) as shop,
        serving(app, Address("127.0.0.1", 0), timeout_graceful_shutdown=1) as address,
        async_playwright() as playwright,
    ):
        browser = await playwright.chromium.launch(
            executable_path=found.executable, args=SWITCHES, env={**os.environ, **found.environment}
        )
        pictures: tuple[tuple[str, str, Literal["light", "dark"], int], ...] = (
            ("dashboard", "/", "light", 800),
            ("dashboard-job", f"/queues/orders/jobs/{shop.failed}", "dark", 640),
            ("dashboard-flow", f"/queues/images/flows/{shop.flow}", "light", 460),
        )
        for name, path, scheme, height in pictures:
            page = await browser.new_page(
                viewport={"width": WIDTH, "height": height}, color_scheme=scheme, reduced_motion="reduce"
            )
            await page.goto(address.url + path)
            await page.locator("#status", has_text="Live").wait_for()
            file = FOLDER / f"{name}.png"
            await page.screenshot(path=file)
            assert file.stat().st_size < LARGEST, f"{file} is too large for a page: {file.stat().st_size:,} bytes"
            await page.close()
        await browser.close()
    await store.close()


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    # Not the name of the machine that draws.
    with patch.object(socket, "gethostname", return_value="web-1"):
        asyncio.run(draw())
