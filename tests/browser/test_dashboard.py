"""The dashboard in a real browser."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from playwright.async_api import expect

from ropeway import Flow, JobFailed, Unrecoverable, Worker
from tests.patience import PATIENCE

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.xdist_group("browser")]

expect.set_options(timeout=60_000)
PHONE = {"viewport": {"width": 390, "height": 844}}
LOUD = "<img src=x onerror=console.error('ran')>"


@pytest.mark.parametrize(
    "options",
    [{}, {"color_scheme": "dark"}, PHONE, {"java_script_enabled": False}],
    ids=["wide", "dark", "phone", "no-js"],
)
async def test_pages_are_shown(site, open_page, options):
    job = await site.queue.add(LOUD, {"text": LOUD}, tags=["a"])
    flow = await site.queue.add_flow(Flow("report", children=[Flow(LOUD, children=[Flow("fetch")])]))
    async with open_page("/", **options) as page:
        for path, words in (
            ("/", "Overview"),
            ("/queues", "Queues"),
            ("/queues/mail", "mail"),
            ("/jobs", "Jobs"),
            (f"/queues/mail/jobs/{job.id}", LOUD),
            ("/failures", "Failures"),
            ("/flows", "Flows"),
            (f"/queues/mail/flows/{flow.id}", "report"),
            ("/schedules", "Schedules"),
            ("/workers", "Workers"),
            ("/events", "Events"),
            ("/doctor", "Doctor"),
        ):
            await page.goto(site.url + path)
            await expect(page.locator("h1")).to_have_text(words)
            width = page.viewport_size["width"]
            if options.get("java_script_enabled", True):
                assert await page.evaluate("document.documentElement.scrollWidth") <= width, path
        dark = (
            await page.locator("body").evaluate("body => getComputedStyle(body).backgroundColor")
            if options.get("java_script_enabled", True)
            else ""
        )
        assert (dark == "rgb(17, 22, 29)") == (options.get("color_scheme") == "dark")


async def test_numbers_move_and_a_hidden_tab_is_quiet(site, open_page):
    await site.queue.add("welcome")
    async with open_page("/queues/mail") as page:
        waiting = page.locator('[data-number="waiting"]')
        await expect(waiting).to_have_text("1")
        await expect(page.locator("#status")).to_have_text("Live")
        await site.queue.add_many(["welcome"] * 1_233)
        await expect(waiting).to_have_text("1,234")
        assert site.dashboard.changes.open == 1
        await page.evaluate(HIDE)
        await until(lambda: site.dashboard.changes.open == 0)


HIDE = """() => {
  Object.defineProperty(document, "hidden", { value: true, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


async def until(is_so):
    async with asyncio.timeout(PATIENCE):
        while not is_so():  # noqa: ASYNC110 - the other side is a browser
            await asyncio.sleep(0.02)


async def listening(page):
    """The scripts come after the page: the button appears with them."""
    await expect(page.locator("#help-button")).to_be_visible()


async def test_a_graph_is_live_and_leads_to_its_jobs(site, open_page):
    flow = await site.queue.add_flow(Flow("report", children=[Flow("fetch", queue="etl")]))
    async with open_page(f"/queues/mail/flows/{flow.id}") as page:
        fetch = page.locator("a.node", has_text="fetch")
        await expect(fetch).to_contain_text("waiting")
        await flow.children[0].cancel()
        await expect(fetch).to_contain_text("cancelled")
        await expect(page.locator("a.node", has_text="report")).to_contain_text("failed")
        await fetch.click()
        await expect(page.locator("h1")).to_have_text("fetch")


async def test_a_tail_can_be_paused_and_says_what_it_missed(site, open_page):
    await site.queue.add("welcome")
    async with open_page("/events?queue=mail") as page:
        rows, gap = page.locator("tr[data-row]"), page.locator("tr.gap")
        await expect(rows).to_have_count(2)
        await expect(page.locator("#status")).to_have_text("Live")
        await site.queue.add("welcome")
        await expect(rows).to_have_count(4)
        await expect(gap).to_have_count(0)
        await page.get_by_role("button", name="Pause").click()
        # The page looks, and leaves its rows alone.
        async with page.expect_response(lambda answer: answer.url.endswith("/events?queue=mail") and answer.ok):
            await site.queue.add_many(["welcome"] * 200)
        await expect(rows).to_have_count(4)
        await page.get_by_role("button", name="Go on").click()
        await expect(rows).to_have_count(104)
        await expect(gap).to_have_count(1)


async def test_parts_come_and_go_with_what_they_show(site, open_page):
    job = await site.queue.add("welcome")
    async with open_page(f"/queues/mail/jobs/{job.id}") as page:
        await expect(page.locator("#why")).to_be_visible()
        await expect(page.locator("#status")).to_have_text("Live")
        await site.queue.cancel(job.id, "not wanted")
        await expect(page.locator("#reason")).to_contain_text("not wanted")
        await expect(page.locator("#why")).to_have_count(0)


async def test_keys(site, open_page):
    await site.queue.add("welcome")
    async with open_page("/") as page:
        await listening(page)
        await page.keyboard.press("?")
        await expect(page.locator("#help")).to_be_visible()
        await page.keyboard.press("Escape")
        await page.keyboard.press("g")
        await page.keyboard.press("q")
        await expect(page.locator("h1")).to_have_text("Queues")
        await listening(page)
        await page.keyboard.press("/")
        await expect(page.locator("[data-search]")).to_be_focused()
        await page.keyboard.press("Escape")
        await page.keyboard.press("j")
        await expect(page.locator("tr.chosen a").first).to_have_text("mail")
        await page.keyboard.press("Enter")
        await expect(page.locator("h1")).to_have_text("mail")


async def test_a_change_asks_first(site, open_page):
    await site.queue.add("welcome")
    async with open_page("/queues/mail") as page:
        await listening(page)
        await page.get_by_role("button", name="Pause").first.click()
        await page.get_by_role("button", name="Cancel").click()
        assert not (await site.queue.settings()).paused
        await page.get_by_role("button", name="Pause").first.click()
        await page.get_by_role("button", name="Go on").click()
        await expect(page.get_by_role("status").filter(has_text="The queue is paused.")).to_be_visible()
        assert (await site.queue.settings()).paused


async def fail(queue):
    async def handler(job):
        raise Unrecoverable("order 7 has no customer")

    job = await queue.add("import", {"n": 7})
    async with Worker(queue, {"import": handler}):
        with suppress(JobFailed):
            await job.result(timeout=PATIENCE)


async def test_a_group_of_failures_is_retried(site, open_page):
    await fail(site.queue)
    async with open_page("/failures") as page:
        await listening(page)
        await page.get_by_role("button", name="Retry all").click()
        await page.get_by_role("button", name="Go on").click()
        await expect(page.get_by_role("status").filter(has_text="1 job retried.")).to_be_visible()
        await expect(page.locator("#groups h2")).to_have_text("Nothing has failed")


async def test_chosen_jobs_are_cancelled(site, open_page):
    await site.queue.add_many(["welcome"] * 3)
    async with open_page("/jobs?queue=mail&state=waiting") as page:
        await listening(page)
        await page.get_by_label("Choose all of this page").check()
        await page.get_by_role("button", name="Cancel").click()
        await page.get_by_role("button", name="Go on").click()
        await expect(page.get_by_role("status").filter(has_text="3 jobs cancelled.")).to_be_visible()
    assert (await site.queue.counts())["cancelled"] == 3


UNLABELLED = """() => {
  const shown = (each) => each.offsetParent !== null;
  const named = (each) => (each.textContent || each.getAttribute("aria-label") || "").trim();
  const fields = [...document.querySelectorAll("input:not([type=hidden]), select, textarea")];
  const links = [...document.querySelectorAll("a[href], button")].filter(shown);
  const pictures = [...document.querySelectorAll("img:not([alt]), svg:not([aria-label])")];
  return [
    ...fields.filter((each) => !each.labels.length && !each.getAttribute("aria-label")),
    ...links.filter((each) => !named(each)),
    ...pictures,
  ].map((each) => each.outerHTML);
}"""
FAINT = """() => {
  const parse = (text) => (text.match(/[\\d.]+/g) ?? []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (each) => {
    for (let at = each; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] > 0.9) return colour;
    }
    return [255, 255, 255];
  };
  const own = (each) => [...each.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
  return [...document.querySelectorAll("body *")].filter((each) => each.offsetParent && own(each)).flatMap((each) => {
    const [a, b] = [light(parse(getComputedStyle(each).color)), light(behind(each))].sort((x, y) => y - x);
    const contrast = (a + 0.05) / (b + 0.05);
    return contrast < 4.5 ? [`${contrast.toFixed(1)} ${each.outerHTML.slice(0, 120)}`] : [];
  });
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_everything_has_a_name_and_can_be_read(site, open_page, scheme):
    await fail(site.queue)
    job = await site.queue.add("welcome", {"to": "you"})
    flow = await site.queue.add_flow(Flow("report", children=[Flow("fetch")]))
    await site.queue.pause("welcome")
    await site.queue.schedule("nightly", "welcome", cron="0 3 * * *")
    async with open_page("/", color_scheme=scheme, reduced_motion="reduce") as page:
        for path in (
            "/",
            "/queues",
            "/queues/mail",
            "/jobs",
            f"/queues/mail/jobs/{job.id}",
            "/failures",
            "/flows",
            f"/queues/mail/flows/{flow.id}",
            "/schedules",
            "/workers",
            "/events",
            "/doctor",
            "/login",
        ):
            await page.goto(site.url + path)
            assert await page.evaluate(UNLABELLED) == [], path
            assert await page.evaluate(FAINT) == [], path
