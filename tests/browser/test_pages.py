"""Every page of the table in a real browser, full of hostile texts: light, dark, wide, narrow, without scripts."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from playwright.async_api import Page, ViewportSize, expect

from tests.server.dashboard.filling import Filled, addresses

from .install import find_axe

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.xdist_group("browser")]

WIDE: ViewportSize = {"width": 1280, "height": 900}
NARROW: ViewportSize = {"width": 390, "height": 844}
CHECK = """async (rules) => {
  const { violations } = await axe.run(document, { runOnly: rules, resultTypes: ["violations"] });
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html, any, all }) => `${id}: ${html.slice(0, 200)} ${[...any, ...all][0]?.message ?? ""}`));
}"""
RULES = {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}
CONTRAST = {"type": "rule", "values": ["color-contrast"]}
BEYOND = """() => [...document.querySelectorAll("button")]
  .filter((each) => each.getBoundingClientRect().right > innerWidth).map((each) => each.textContent)"""
FOCUSED = "() => [document.activeElement.tagName, getComputedStyle(document.activeElement).outlineStyle]"
DARK = "rgb(17, 22, 29)"


def pages(found: Filled) -> list[str]:
    """Of the pages of jobs some are enough here: one that failed, one of a flow, one that runs."""
    id = found.params["id"]
    shown = addresses({**found.params, "file": [], "id": [id[2], *id[-3::2]]})
    return [*(path for path in shown if path != "/jobs/all"), "/jobs/all?action=cancel&queue=mail"]


async def problems(page: Page, rules: dict[str, Any]) -> list[str]:
    found: list[str] = await page.evaluate(CHECK, rules)
    return found


async def overflow(page: Page) -> int:
    """Pixels by which the page is wider than its window."""
    found: int = await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return found


async def complaints_about(page: Page) -> list[str]:
    """In light and wide, in dark and narrow."""
    await page.evaluate(find_axe())
    found = []
    looks: tuple[tuple[Literal["light", "dark"], ViewportSize, Any], ...] = (
        ("light", WIDE, RULES),
        ("dark", NARROW, CONTRAST),
    )
    for scheme, size, rules in looks:
        await page.emulate_media(color_scheme=scheme)
        await page.set_viewport_size(size)
        found += [f"{page.url} {scheme} {each}" for each in await problems(page, rules)]
        if (wide := await overflow(page)) > 0:
            found.append(f"{page.url} is {wide} px wider than a window of {size['width']}")
    found += [f"{page.url}: {each} is beyond the edge of a phone" for each in await page.evaluate(BEYOND)]
    colour = await page.locator("body").evaluate("body => getComputedStyle(body).backgroundColor")
    return found if colour == DARK else [*found, f"{page.url} is {colour} in the dark"]


async def test_every_page_can_be_used_by_everybody(full_site, open_page):
    site, found = full_site
    async with open_page(site.url, reduced_motion="reduce") as page:
        complaints = []
        for path in pages(found):
            await page.goto(site.url + path)
            await expect(page.locator("h1")).to_have_count(1)
            complaints += await complaints_about(page)
        assert not complaints, "\n".join(complaints)


async def test_a_page_of_an_error_can_be_used_too(full_site, browser):
    page = await browser.new_page()
    answer = await page.goto(f"{full_site[0].url}/queues/nothing-here")
    assert answer.status == 404
    complaints = await complaints_about(page)
    await page.close()
    assert not complaints, "\n".join(complaints)


async def test_every_page_works_without_scripts(full_site, open_page):
    site, found = full_site
    async with open_page(site.url, java_script_enabled=False) as page:
        for path in pages(found):
            answer = await page.goto(site.url + path)
            assert answer.status == 200, path
            await expect(page.locator("h1")).to_have_count(1)
            assert (await page.locator("nav[aria-label=Pages] a").count() >= 6) == (path != "/login")
        # Forms do what their scripts would only ask about.
        await page.goto(f"{site.url}/queues/mail")
        await page.get_by_role("button", name="Pause").first.click()
        await expect(page.get_by_role("status").filter(has_text="The queue is paused.")).to_be_visible()
        await page.get_by_role("button", name="Resume").first.click()
        await expect(page.get_by_role("status").filter(has_text="The queue goes on.")).to_be_visible()
        assert not (await site.queue.settings()).paused


async def test_everything_that_is_focused_is_seen(full_site, open_page):
    site, _ = full_site
    async with open_page(f"{site.url}/jobs?queue=mail") as page:
        await page.keyboard.press("Tab")
        await expect(page.locator(":focus")).to_have_text("Skip to the content")
        await page.keyboard.press("Enter")
        await expect(page.locator("#main")).to_be_focused()
        seen = set()
        for _ in range(25):
            await page.keyboard.press("Tab")
            kind, outline = await page.evaluate(FOCUSED)
            seen.add(kind)
            assert "none" not in outline, kind
        assert seen >= {"SELECT", "INPUT", "BUTTON", "A"}
