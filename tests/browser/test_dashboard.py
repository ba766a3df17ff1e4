"""The dashboard in a real browser."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from playwright.async_api import expect
from starlette.applications import Starlette
from starlette.routing import Mount

from ropeway import Flow, JobFailed, Unrecoverable, Worker
from ropeway.server import broker
from ropeway.server.dashboard import dashboard
from ropeway.server.serving import Address, serving
from ropeway.server.tokens import create_token
from tests.patience import PATIENCE

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.xdist_group("browser")]

expect.set_options(timeout=60_000)


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


HEARS = "addEventListener('keydown', () => (document.body.dataset.hears = 'yes'), { once: true })"


async def listening(page):
    """The scripts come after the page: the button appears with them.

    On a busy machine Chromium may show a page without giving it the keyboard.
    """
    await expect(page.locator("#help-button")).to_be_visible()
    await page.evaluate(HEARS)

    async with asyncio.timeout(PATIENCE):
        while not await page.evaluate("document.body.dataset.hears"):
            await page.bring_to_front()
            await page.keyboard.press("Shift")


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


async def test_a_log_follows_its_job_and_stays_where_a_reader_is(site, open_page):
    has_begun, may_end = asyncio.Event(), asyncio.Event()

    async def talk(job):
        for number in range(100):
            await job.log(f"line {number}")
        has_begun.set()
        await may_end.wait()
        await job.log("the last line")

    job = await site.queue.add("talk")
    async with Worker(site.queue, {"talk": talk}):
        await has_begun.wait()
        async with open_page(f"/queues/mail/jobs/{job.id}") as page, open_page(f"/queues/mail/jobs/{job.id}") as other:
            await page.wait_for_function(AT_END, timeout=60_000)
            await other.wait_for_function(AT_END, timeout=60_000)
            # In one go: a locator finds the log first, and it may be replaced before it is scrolled.
            await other.evaluate("document.querySelector('.log').scrollTo(0, 20)")
            may_end.set()
            await job.result(timeout=PATIENCE)
            for each in (page, other):
                await expect(each.get_by_text("the last line")).to_be_attached()
            assert await page.evaluate(AT_END)
            assert await other.evaluate("document.querySelector('.log').scrollTop") == 20


AT_END = """() => {
  const log = document.querySelector(".log");
  return log.scrollTop > 0 && log.scrollTop + log.clientHeight >= log.scrollHeight - 4;
}"""


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


async def test_all_that_match_are_cancelled_by_one_operation(site, open_page):
    await site.queue.add_many([("welcome", {"n": n}) for n in range(60)])
    await site.queue.add("bye")
    async with open_page("/jobs?queue=mail&name=welcome") as page:
        await listening(page)
        await page.get_by_role("link", name="Cancel…").click()
        await page.get_by_role("button", name="Cancel 60 jobs").click()
        await expect(page.locator("#operation")).to_contain_text("It is over.")
        await expect(page.locator("[data-number=done]")).to_have_text("60")
    counts = await site.queue.counts()
    assert (counts["waiting"], counts["cancelled"]) == (1, 60)


async def test_it_is_live_under_a_prefix(site, open_page):
    await site.queue.add("welcome")
    app, pages = broker(site.store), dashboard(site.store)
    app.pages = Starlette(routes=[Mount("/ops/jobs", pages)])
    async with (
        pages,
        serving(app, Address("127.0.0.1", 0), timeout_graceful_shutdown=0) as address,
        open_page(f"{address.url}/ops/jobs") as page,
    ):
        await page.get_by_role("link", name="Queues", exact=True).first.click()
        await page.get_by_role("link", name="mail", exact=True).click()
        await expect(page.locator("#status")).to_have_text("Live")
        await site.queue.add("welcome")
        await expect(page.locator('[data-number="waiting"]')).to_have_text("2")
        await page.get_by_role("button", name="Pause").first.click()
        await page.get_by_role("button", name="Go on").click()
        await expect(page.get_by_role("button", name="Resume").first).to_be_visible()
        assert page.url.startswith(f"{address.url}/ops/jobs/queues/mail?note=")


FORM = """<!doctype html><title>another site</title><a href="{url}/queues/mail">look</a>
<form method="post" action="{url}/queues/mail/pause"><button>pause</button></form>"""


async def test_other_sites_may_link_to_a_page_and_change_nothing(site, browser):
    """`localhost` and `127.0.0.1` are two sites to a browser."""
    await site.queue.add("welcome")
    token, _ = await create_token(site.store, ["operator"])
    context = await browser.new_context()
    page = await context.new_page()
    await page.goto(f"{site.url}/queues/mail")
    await page.get_by_label("Token").fill(token)
    await page.get_by_role("button", name="Log in").click()
    await expect(page.locator("h1")).to_have_text("mail")
    other = site.url.replace("127.0.0.1", "localhost")
    await page.route(
        f"{other}/elsewhere", lambda route: route.fulfill(body=FORM.format(url=site.url), content_type="text/html")
    )
    await page.goto(f"{other}/elsewhere")
    await page.get_by_role("link").click()
    await expect(page.locator("h1")).to_have_text("mail")
    await page.goto(f"{other}/elsewhere")
    async with page.expect_response(lambda answer: answer.request.method == "POST") as posted:
        await page.get_by_role("button").click()
    assert (await posted.value).status == 303, "it was sent without the session, to the login"
    assert "/login?next=" in (await (await posted.value).header_value("location"))
    assert not (await site.queue.settings()).paused
    await context.close()
