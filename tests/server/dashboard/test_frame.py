"""What holds for every page: escaping, sessions, same site, prefixes, read-only."""

from __future__ import annotations

import re

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from ropeway import Queue
from ropeway.server.dashboard import dashboard
from ropeway.server.dashboard.table import ROUTES
from ropeway.server.roles import RIGHTS

from .conftest import SAME_SITE
from .filling import RAW, fill

OPEN = {"/login", "/logout", "/static/{file}"}
"""What anyone may ask for."""


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_a_page_has_a_rule(route):
    assert set(route.right) <= set(RIGHTS)
    assert bool(route.right) or route.path in OPEN, "anyone could call it"
    assert ("{queue}" in route.path) == (route.scope == "queue"), "nobody checks which queue it is about"
    if route.method != "GET" and route.path not in OPEN:
        assert (route.right, route.audited) == (("operate",), True)


def addresses(queue: str, ids: dict[str, str]) -> list[str]:
    """Of every page, with what it shows."""
    known = {"queue": queue, "file": "live.js"}
    found: list[str] = []
    for route in ROUTES:
        if route.method == "GET" and route.path not in ("/live", "/operations/{operation}"):
            wanted = ids.values() if "{id}" in route.path else [""]
            found += [route.path.format(**known, id=id) for id in wanted]
    return [*found, f"/jobs?queue={queue}&state=failed", "/jobs?text=script", "/jobs/all?action=retry"]


async def test_no_page_runs_what_jobs_contain(store, pages):
    queue, ids = await fill(store)
    for address in addresses(queue.name, ids):
        answer = await pages.get("/jobs/all?action=remove&text=script" if address == "/jobs/all" else address)
        assert answer.status_code == 200, (address, answer.text)
        assert answer.headers["content-security-policy"].startswith("default-src 'self';")
        if "html" in answer.headers["content-type"]:
            assert not [raw for raw in RAW if raw in answer.text], address
            assert not re.search(r"<script(?! type=\"module\" src=)|<style|\sstyle=|\son[a-z]+=\"", answer.text), (
                address
            )
            assert not re.search(r"(src|href|action)=\"(https?:)?//", answer.text), address


async def test_hostile_addresses_are_answered(store, pages):
    await fill(store)
    for address in (
        "/?span=<script>",
        "/queues?text=<script>alert&after=%00",
        "/queues?note=<script>alert(1)",
        "/%3Cscript%3Ealert",
    ):
        answer = await pages.get(address)
        assert answer.status_code in (200, 404)
        assert "<script>alert" not in answer.text


async def test_a_part_is_answered_only_if_it_changed(store, pages):
    queue, _ = await fill(store)
    first = await pages.get("/queues/mail", headers={"x-ropeway-part": "1"})
    assert '<nav aria-label="Pages"' not in first.text
    again = {"x-ropeway-part": "1", "if-none-match": first.headers["etag"]}
    assert (await pages.get("/queues/mail", headers=again)).status_code == 304
    await pages.post("/queues/mail/pause")
    assert (await pages.get("/queues/mail", headers=again)).status_code == 200
    assert (await queue.settings()).paused


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "none"},
    ],
)
async def test_pages_of_other_sites_change_nothing(store, visit, headers):
    queue = Queue("mail", store=store)
    await queue.add("welcome")
    async with visit(headers={}) as client:
        answer = await client.post("/queues/mail/pause", headers=headers)
        assert answer.status_code == 403
        assert not (await queue.settings()).paused
        own = {"origin": str(client.base_url).rstrip("/")}
        assert (await client.post("/queues/mail/pause", headers=own)).status_code == 303
    assert (await queue.settings()).paused


async def test_a_session_has_the_rights_of_its_token(store, visit, make_token):
    queue = Queue("mail", store=store)
    await queue.add("welcome")
    viewer, operator = await make_token("viewer"), await make_token("operator", queues=["mail"])
    async with visit() as client:
        sent = await client.get("/queues/mail")
        assert (sent.status_code, sent.headers["location"]) == (303, "/login?next=%2Fqueues%2Fmail")
        assert (await client.post("/login", data={"token": f"rw_{'0' * 16}_{'0' * 64}"})).status_code == 401

        logged_in = await client.post("/login", data={"token": token_of(viewer), "next": "//evil.example"})
        assert logged_in.headers["location"] == "/"
        cookie = logged_in.headers["set-cookie"].lower()
        assert all(word in cookie for word in ("httponly", "samesite=strict", "path=/"))
        assert "Pause" not in (await client.get("/queues/mail")).text
        assert (await client.post("/queues/mail/pause")).status_code == 403

        client.cookies.clear()
        await client.post("/login", data={"token": token_of(operator)})
        assert (await client.post("/queues/mail/pause")).status_code == 303
        assert (await client.get("/queues/other")).status_code == 403
        await client.post("/logout")
        assert (await client.get("/queues/mail")).status_code == 303
    assert (await queue.settings()).paused


def token_of(header: dict[str, str]) -> str:
    return header["authorization"].split()[1]


async def test_a_dashboard_may_only_show_or_ask(store, visit):
    queue = Queue("mail", store=store)
    await queue.add("welcome")
    async with visit(read_only=True) as client:
        assert "read-only" in (await client.get("/queues/mail")).text
        assert (await client.post("/queues/mail/pause")).status_code == 403
    asked = []

    async def authorize(who, action, target):
        asked.append((who.name, action, target))
        return action != "pause"

    async with visit(authorize=authorize) as client:
        assert (await client.post("/queues/mail/pause")).status_code == 403
        assert (await client.post("/queues/mail/limit", data={"limit": "3"})).status_code == 303
    assert asked == [("local", "pause", "mail"), ("local", "limit", "mail")]
    settings = await queue.settings()
    assert (settings.paused, settings.max_active) == (False, 3)


async def test_it_can_be_mounted_under_any_prefix(store):
    await Queue("mail", store=store).add("welcome")
    app = Starlette(routes=[Mount("/ops/jobs", dashboard(store, hosts=["shop.example"]))])
    transport = httpx.ASGITransport(app, client=("127.0.0.1", 1))
    async with httpx.AsyncClient(transport=transport, base_url="http://shop.example", headers=SAME_SITE) as client:
        for address in ("/ops/jobs/", "/ops/jobs/queues", "/ops/jobs/queues/", "/ops/jobs/queues/mail"):
            answer = await client.get(address)
            assert answer.status_code == 200, address
            links = re.findall(r"(?:href|src|action|data-live)=\"([^\"#]*)\"", answer.text)
            assert links
            assert all(link.startswith("/ops/jobs/") for link in links), address
        moved = await client.post("/ops/jobs/queues/mail/pause")
        assert moved.headers["location"].startswith("/ops/jobs/queues/mail?note=")


async def test_a_queue_is_operated(store, pages):
    queue = Queue("mail", store=store)
    await queue.add_many(["welcome", "welcome", "bye"])
    await queue.add("later", delay="1 hour")
    await pages.post("/queues/mail/pause", data={"name": "bye"})
    await pages.post("/queues/mail/limit", data={"limit": "7"})
    settings = await queue.settings()
    assert (settings.paused_names, settings.max_active) == (("bye",), 7)
    refused = await pages.post("/queues/mail/limit", data={"limit": "many"})
    assert refused.status_code == 422
    assert (await pages.post("/queues/mail/clean", data={"state": "active"})).status_code == 422
    drained = await pages.post("/queues/mail/drain")
    assert "Removed+3+jobs" in drained.headers["location"]
    assert (await queue.counts())["delayed"] == 1
    assert (await pages.get("/queues/nothing-here")).status_code == 404
    unreadable = await pages.get("/queues?state=%ff")
    assert (unreadable.status_code, unreadable.headers["content-type"]) == (400, "text/html; charset=utf-8")
