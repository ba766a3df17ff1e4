"""The newest events, as a page."""

from __future__ import annotations

import re

from ropeway import Queue


def shown(page):
    """Queue and event of each row."""
    return re.findall(r'data-row="([^~"]*)~[^"]*">.*?<span class="state ([\w-]+)"', page.text, re.DOTALL)


async def test_the_newest_come_first_over_all_queues(store, pages):
    mail, orders = Queue("mail", store=store), Queue("orders", store=store)
    job = await mail.add("welcome")
    await orders.add("ship")
    await mail.cancel(job.id)
    page = await pages.get("/events")
    assert set(shown(page)[:2]) == {("mail", "cancelled"), ("mail", "drained")}
    assert {queue for queue, _ in shown(page)} == {"mail", "orders"}
    for address, expected in (
        ("/events?queue=orders", {("orders", "added"), ("orders", "waiting")}),
        ("/events?event=cancelled", {("mail", "cancelled")}),
        (f"/events?job={job.id}", {("mail", "added"), ("mail", "waiting"), ("mail", "cancelled")}),
        ("/events?event=failed", set()),
    ):
        assert set(shown(await pages.get(address))) == expected, address
    for wrong in ("/events?before=x", "/events?queue=mail&before=x", "/events?event=%20%00"):
        assert (await pages.get(wrong)).status_code == 422, wrong


async def test_older_pages_show_every_event_once(store, pages):
    queue = Queue("mail", store=store)
    jobs = await queue.add_many(["welcome"] * 130)
    await queue.cancel(jobs[0].id)
    seen: list[str] = []
    address = "/events?queue=mail"
    while address:
        page = await pages.get(address)
        rows = re.findall(r'data-row="([^"]*)"', page.text)
        assert len(rows) <= 100
        seen += rows
        following = re.search(r'href="(/events\?[^"]*before=[^"]*)"', page.text)
        address = following[1].replace("&amp;", "&") if following else ""
    assert (len(seen), len(set(seen))) == (261, 261), "two for each job, and one for its end"
    [cancelled] = re.findall(r'data-row="([^"]*)"', (await pages.get("/events?queue=mail&event=cancelled")).text)
    assert cancelled == seen[0]


async def test_a_search_looks_at_a_bounded_number_of_events(store, pages):
    queue = Queue("mail", store=store)
    jobs = await queue.add_many(["welcome"] * 1_500)
    address = f"/events?queue=mail&event=waiting&job={jobs[0].id}"
    page = await pages.get(address)
    assert "2,000 events were looked at" in page.text
    following = re.search(r'href="(/events\?before=[^"]*)"', page.text)
    assert following
    assert shown(await pages.get(following[1].replace("&amp;", "&"))) == [("mail", "waiting")]


async def test_a_token_sees_the_events_of_its_queues_alone(store, visit, make_token):
    for name in ("mail", "secret"):
        await Queue(name, store=store).add("welcome")
    headers = await make_token("viewer", queues=["mail"])
    async with visit(headers={**headers, "sec-fetch-site": "same-origin"}) as client:
        assert {queue for queue, _ in shown(await client.get("/events"))} == {"mail"}
        assert (await client.get("/events?queue=secret")).status_code == 403
