"""The dashboard inside other applications: prefixes, proxies, and users that these know."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Mount, Route

from ropeway import Queue
from ropeway.errors import InvalidOption
from ropeway.server import broker
from ropeway.server.dashboard import Dashboard, dashboard
from ropeway.server.roles import Principal
from ropeway.store.contract import Store
from tests.server.conftest import client_of

from .conftest import SAME_SITE


@asynccontextmanager
async def calling(app: Any, address: str = "127.0.0.1", **options: Any) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app, client=(address, 1))
    options = {"base_url": "http://shop.example", "headers": SAME_SITE, **options}
    async with httpx.AsyncClient(transport=transport, **options) as client:
        yield client


def in_starlette(pages: Dashboard) -> Any:
    return Starlette(routes=[Mount("/ops/jobs", pages)])


def in_fastapi(pages: Dashboard) -> Any:
    app = FastAPI()
    app.mount("/ops/jobs/", pages)
    return app


def by_hand(pages: Dashboard) -> Any:
    """As the prefix is written by servers that are told so."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await pages({**scope, "root_path": "/ops/jobs/"}, receive, send)

    return app


async def assert_inside(client: httpx.AsyncClient, root: str) -> None:
    """Whatever a page leads to is under the prefix."""
    bare = await client.get(root, follow_redirects=True)
    assert (bare.status_code, bare.url.path) == (200, f"{root}/")
    for path in ("/", "/queues", "/queues/", "/queues/mail", "/jobs", "/jobs/", "/jobs?queue=mail"):
        answer = await client.get(root + path)
        assert answer.status_code == 200, path
        links = re.findall(r"(?:href|src|action|data-live|data-root)=\"([^\"#]+)\"", answer.text)
        assert all(link == root or link.startswith(f"{root}/") for link in links), path
        assert len(links) > 10
        for link in {link for link in links if "/static/" in link}:
            assert (await client.get(link)).status_code == 200, link
    moved = await client.post(f"{root}/queues/mail/pause")
    assert moved.headers["location"].startswith(f"{root}/queues/mail?note=")


@pytest.mark.parametrize("put", [in_starlette, in_fastapi, by_hand])
async def test_it_can_be_mounted_under_any_prefix(store: Store, put: Callable[[Dashboard], Any]):
    await Queue("mail", store=store).add("welcome")
    async with dashboard(store, hosts=["shop.example"]) as pages, calling(put(pages)) as client:
        await assert_inside(client, "/ops/jobs")


async def test_it_can_be_served_behind_a_proxy_that_strips_a_prefix(store: Store, make_token):
    await Queue("mail", store=store).add("welcome")
    token = await make_token("operator")
    app = broker(store)
    app.pages = Dashboard(app)
    async with client_of(app, headers={**SAME_SITE, **token}, root_path="/ops/jobs") as direct:

        async def strip(request: httpx.Request) -> httpx.Response:
            assert request.url.path.startswith("/ops/jobs"), "it would not reach the server"
            path = request.url.raw_path.removeprefix(b"/ops/jobs") or b"/"
            headers = {**request.headers, "x-forwarded-for": "10.0.0.7"}
            return await direct.request(
                request.method, path.decode(), headers=headers, content=await request.aread(), follow_redirects=False
            )

        proxied: Any = {"base_url": direct.base_url, "headers": {**SAME_SITE, **token}}
        async with httpx.AsyncClient(transport=httpx.MockTransport(strip), **proxied) as client:
            for path in ("/", "/queues", "/queues/mail"):
                answer = await client.get(f"/ops/jobs{path}")
                assert answer.status_code == 200
                links = re.findall(r"(?:href|src|action|data-live)=\"([^\"#]+)\"", answer.text)
                assert all(link.startswith("/ops/jobs/") for link in links), path


@pytest.mark.parametrize(
    ("address", "headers"),
    [("10.0.0.7", {}), *(("127.0.0.1", {name: "10.0.0.7"}) for name in ("x-forwarded-for", "forwarded", "via"))],
)
async def test_without_tokens_it_answers_this_machine_alone(store: Store, address: str, headers: dict[str, str]):
    async with (
        dashboard(store, hosts=["shop.example"]) as pages,
        calling(pages, address, headers={**SAME_SITE, **headers}) as client,
    ):
        assert (await client.get("/queues")).headers["location"] == "/login?next=%2Fqueues"
        assert (await client.get("/queues", headers={"host": "evil.example"})).status_code == 421


USERS = {"ann": Principal.of("ann", "operator", queues=["mail"]), "bob": Principal.of("bob", "viewer")}


async def test_an_application_says_who_asks(store: Store, make_token):
    """Its session decides, and no token, cookie of ours or address beside it."""
    await Queue("mail", store=store).add("welcome")
    await Queue("orders", store=store).add("ship")
    token = await make_token("admin")

    async def enter(request: Request) -> Response:
        request.session["user"] = request.path_params["user"]
        return Response()

    async def authenticate(request: Request) -> Principal | Response | None:
        user = request.session.get("user")
        return RedirectResponse("/sign-in") if user is None else USERS.get(user)

    asked: list[tuple[str, str, str]] = []

    def authorize(who: Principal, action: str, target: str) -> bool:
        asked.append((who.name, action, target))
        return True

    pages = dashboard(store, hosts=["shop.example"], authenticate=authenticate, authorize=authorize)
    app = Starlette(
        routes=[Mount("/jobs", pages), Route("/enter/{user}", enter)],
        middleware=[Middleware(SessionMiddleware, secret_key="of a test")],
    )
    async with pages, calling(app) as client:
        cookie = {"cookie": f"ropeway_session={token['authorization'].split()[1]}"}
        for headers in ({}, token, cookie):
            sent = await client.get("/jobs/queues", headers=headers)
            assert (sent.status_code, sent.headers["location"]) == (307, "/sign-in")
        for path in ("/jobs/login", "/jobs/logout"):
            assert (await client.post(path, data={"token": "x"})).status_code == 404
        await client.get("/enter/stranger")
        assert (await client.get("/jobs/queues")).status_code == 401
        await client.get("/enter/bob")
        assert "orders" in (await client.get("/jobs/queues")).text
        assert (await client.post("/jobs/queues/mail/pause")).status_code == 403
        await client.get("/enter/ann")
        page = await client.get("/jobs/queues", headers=cookie)
        assert "orders" not in page.text
        assert "Log out" not in page.text, "it is not ours to end"
        assert (await client.post("/jobs/queues/mail/pause")).status_code == 303
        assert (await client.post("/jobs/queues/orders/pause")).status_code == 403
        crossed = {"sec-fetch-site": "cross-site"}
        assert (await client.post("/jobs/queues/mail/pause", headers=crossed)).status_code == 403
    assert asked == [("ann", "pause", "mail")]


async def test_a_login_that_is_broken_lets_nobody_in(store: Store):
    for answer in (lambda _: 1 / 0, lambda _: "ann"):
        async with dashboard(store, hosts=["shop.example"], authenticate=answer) as pages, calling(pages) as client:  # type: ignore[arg-type]
            assert (await client.get("/queues")).status_code == 500
    with pytest.raises(InvalidOption, match="roles"):
        Principal.of("ann", "boss")  # type: ignore[arg-type]
