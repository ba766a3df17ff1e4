"""What holds for every page: escaping, sessions, same site, prefixes, read-only."""

from __future__ import annotations

import re
from typing import get_args
from urllib.parse import urlencode

import httpx
import pytest
from markupsafe import escape

from ropeway import Queue
from ropeway.server.dashboard.redacting import Kind
from ropeway.server.dashboard.table import ROUTES
from ropeway.server.roles import RIGHTS

from .conftest import SAME_SITE
from .filling import HOSTILE, RAW, SECRET, addresses, fill, filled

OPEN = {"/login", "/logout", "/static/{file}"}
"""What anyone may ask for."""
PART = {"x-ropeway-part": "1"}


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_a_page_has_a_rule(route):
    assert set(route.right) <= set(RIGHTS)
    assert bool(route.right) or route.path in OPEN, "anyone could call it"
    assert ("{queue}" in route.path) == (route.scope == "queue"), "nobody checks which queue it is about"
    if route.method != "GET" and route.path not in OPEN:
        assert (route.right, route.audited) == (("operate",), True)
        assert bool(route.targets) != ("{" in route.path), "nobody knows what it is about"


def assert_harmless(answer: httpx.Response, address: str) -> None:
    assert answer.headers["content-security-policy"].startswith("default-src 'self';")
    if "html" in answer.headers.get("content-type", ""):
        assert not [raw for raw in RAW if raw in answer.text], address
        assert not re.search(r"<script(?! type=\"module\" src=)|<style|\sstyle=|\son[a-z]+=\"", answer.text), address
        assert not re.search(r"(src|href|action)=\"(https?:)?//", answer.text), address


async def test_no_page_runs_what_jobs_contain(store, pages):
    async with filled(store) as found:
        seen = ""
        for address in (
            *addresses(found.params),
            "/jobs?queue=mail&state=failed",
            "/jobs?text=script",
            "/jobs/all?action=retry",
        ):
            wanted = "/jobs/all?action=remove&text=script" if address == "/jobs/all" else address
            for headers in ({}, PART):
                answer = await pages.get(wanted, headers=headers)
                assert answer.status_code == 200, (address, answer.text)
                assert_harmless(answer, address)
                seen += answer.text
        for text in HOSTILE:
            assert str(escape(text)) in seen, "it would prove nothing"


async def test_no_page_runs_what_an_address_or_a_form_contains(store, pages):
    async with filled(store) as found:
        for address in addresses(found.params):
            given = dict.fromkeys(("note", "queue", "text", "after", "name", "span", "before", "action"), HOSTILE[0])
            for wanted in (given, {"note": HOSTILE[1]}):
                assert_harmless(await pages.get(f"{address}?{urlencode(wanted)}"), address)
        for path, _ in changes(found.params):
            fields = dict.fromkeys(("action", "queue", "job", "name", "state", "data", "limit", "token"), HOSTILE[0])
            assert_harmless(await pages.post(path, data=fields), path)
        answer = await pages.get("/%3Cscript%3Ealert")
        assert answer.status_code == 404
        assert_harmless(answer, "nothing")


async def test_what_is_redacted_is_on_no_page(store, visit):
    kinds: set[str] = set()

    def redact(kind, value):
        kinds.add(kind)
        return "…"

    async with filled(store) as found, visit() as open_to_all, visit(redact=redact) as client:
        seen = 0
        for address in addresses(found.params):
            assert SECRET not in (await client.get(address)).text, address
            seen += SECRET in (await open_to_all.get(address)).text
        assert seen > 5, "it would prove nothing"
    assert kinds == set(get_args(Kind))


def changes(params: dict[str, list[str]]) -> list[tuple[str, dict[str, str]]]:
    """Every change in the table, with a form for those that need one."""
    id = params["id"][0]
    forms = {
        "/jobs": {"action": "cancel", "job": f"mail/{id}"},
        "/jobs/all": {"action": "cancel", "queue": "mail"},
        "/failures": {"action": "retry", "queue": "mail", "group": "x"},
    }
    first = {name: values[0] for name, values in params.items() if values}
    return [
        (route.path.format(**first), forms.get(route.path, {}))
        for route in ROUTES
        if route.method != "GET" and route.right
    ]


async def test_each_change_is_refused_to_those_who_may_not(store, visit, make_token):
    async with filled(store) as found:
        queue = found.queue
        before = await queue.counts(), await queue.settings(), await queue.schedules.get("nightly")
        asked = []

        def authorize(who, action, target):
            asked.append((action, target))
            return False

        async with visit(authorize=authorize) as client:
            for path, fields in changes(found.params):
                # What a form says beside what it is about does not change who is asked.
                decoy = {} if "job" in fields else {"job": "other/x"}
                answer = await client.post(path, data={**decoy, **fields})
                assert answer.status_code == 403, path
                action, target = asked.pop()
                assert action == fields.get("action", path.rpartition("/")[2]), path
                assert target == fields.get("job", fields.get("queue", target)), path
                assert target not in ("", "*", "other/x"), path
                assert not asked, path
        async with visit(read_only=True) as client:
            for path, fields in changes(found.params):
                assert (await client.post(path, data=fields)).status_code == 403, path
        viewer = await make_token("viewer")
        for headers, status in (
            ({**viewer, **SAME_SITE}, 403),
            ({**viewer, "origin": "https://evil.example"}, 403),
            (SAME_SITE, 303),
        ):
            paths = list(changes(found.params))
            # All of them from one address would be too many without a token.
            for some in (paths[::2], paths[1::2]):
                async with visit(headers=headers) as client:
                    for path, fields in some:
                        answer = await client.post(path, data=fields)
                        assert answer.status_code == status, path
                        assert status != 303 or answer.headers["location"].startswith("/login?next="), path
        assert (await queue.counts(), await queue.settings(), await queue.schedules.get("nightly")) == before


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
        assert store.url not in (await client.get("/login")).text, "strangers are told nothing"
        assert (await client.post("/login", data={"token": f"rw_{'0' * 16}_{'0' * 64}"})).status_code == 401

        logged_in = await client.post("/login", data={"token": token_of(viewer), "next": "//evil.example"})
        assert logged_in.headers["location"] == "/"
        cookie = logged_in.headers["set-cookie"].lower()
        assert all(word in cookie for word in ("httponly", "samesite=lax", "path=/"))
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
