"""Flows: their roots, and the graph of one."""

from __future__ import annotations

import re

from ropeway import Flow, Queue
from ropeway.server.dashboard.graphs import ALIKE

from .filling import HOSTILE, RAW


async def test_roots_are_listed_with_their_children(store, pages):
    reports = Queue("reports", store=store)
    await reports.add("plain")
    flow = await reports.add_flow(Flow("compare", children=[Flow("count", children=[Flow("fetch")]), Flow("average")]))
    ended = await reports.add_flow(Flow("gone", children=[Flow("fetch")]))
    await reports.cancel(ended.id, children=True)
    page = await pages.get("/flows")
    assert re.findall(r'href="/queues/reports/flows/([^"]+)"', page.text) == [flow.id, ended.id]
    assert "2 pending" in page.text
    assert "0 of 2" in page.text
    found = await pages.get("/flows?queue=reports&state=cancelled")
    assert re.findall(r'href="/queues/reports/flows/([^"]+)"', found.text) == [ended.id]
    assert "No flow found" in (await pages.get("/flows?state=completed")).text
    assert (await pages.get("/flows?state=odd")).status_code == 422


async def test_a_search_for_roots_goes_on(store, pages):
    queue = Queue("reports", store=store)
    flows = await queue.add_flows([Flow("report", children=[Flow("fetch")]) for _ in range(90)])
    seen: list[str] = []
    address = "/flows?queue=reports&state=waiting-children"
    while address:
        page = await pages.get(address)
        seen += re.findall(r'href="/queues/reports/flows/([^"]+)"', page.text)
        following = re.search(r'href="(/flows\?[^"]*after=[^"]*)"', page.text)
        address = following[1].replace("&amp;", "&") if following else ""
    assert sorted(seen) == sorted(flow.id for flow in flows)


async def test_a_flow_is_drawn(store, pages):
    reports = Queue("reports", store=store)
    raw = Flow("fetch", queue="etl")
    flow = await reports.add_flow(
        Flow(HOSTILE[0], children=[Flow("count", children=[raw]), Flow("average", children=[raw])])
    )
    page = await pages.get(f"/queues/reports/flows/{flow.id}")
    assert page.text.count('<path class="edge"') == 4
    assert page.text.count('class="node ') == 4
    assert "queue=etl&amp;queue=reports" in page.text, "it is live in all of its queues"
    assert not [text for text in RAW if text in page.text]
    small = await pages.get(f"/queues/reports/jobs/{flow.children[0].id}")
    assert small.text.count('class="node ') == 3, "its parent, itself and its child"
    assert (await pages.get("/queues/reports/flows/none")).status_code == 404


async def test_a_large_flow_is_summed_up_with_failures_first(store, pages):
    queue = Queue("etl", store=store)
    flow = await queue.add_flow(Flow("import", children=[Flow("page", n) for n in range(600)], on_child_failure="wait"))
    await queue.cancel(flow.children[-1].id)
    page = await pages.get(f"/queues/etl/flows/{flow.id}")
    assert "and 501 more" in page.text
    assert "1 cancelled" in page.text
    assert page.text.count('class="node ') == 1 + ALIKE + 1 + 1, "the root, pages, the cancelled one, what is hidden"
    more = await pages.get(f"/queues/etl/flows/{flow.id}?show=more")
    assert "and 101 more" in more.text


async def test_a_flow_shows_no_queue_that_its_visitor_does_not_reach(store, visit, make_token):
    mail = Queue("mail", store=store)
    flow = await mail.add_flow(Flow("report", children=[Flow("invade", queue="secret", id="plan-9")]))
    headers = await make_token("viewer", queues=["mail"])
    async with visit(headers={**headers, "sec-fetch-site": "same-origin"}) as client:
        for address in (f"/queues/mail/flows/{flow.id}", f"/queues/mail/jobs/{flow.id}"):
            page = await client.get(address)
            assert "(another queue)" in page.text
            assert not re.search("invade|secret|plan-9", page.text), address
        assert (await client.get("/queues/secret/flows/plan-9")).status_code == 403
