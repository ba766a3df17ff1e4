"""Hostile and broken requests (FAULTS G5 to G24): each gets a clear refusal, and costs little."""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack, suppress
from typing import Any

import httpx
import pytest

from ropeway.errors import StoreUnavailable
from ropeway.job.instants import Instant
from ropeway.server import bodies, broker, store_watch
from ropeway.server.limits import Limits
from ropeway.server.serving import GRACE, Address, serving
from ropeway.store.commands import Command, Count, Get, ReadClock
from ropeway.store.contract import Store
from ropeway.testing.proxy import StoreProxy

from .conftest import Client, MakeToken, Serve, client_of
from .test_working import claim, submit, tell

JOBS = "/v1/queues/q/jobs"
JSON = {"content-type": "application/json"}


async def raw(web: Client, *parts: bytes, pause: float = 0.0) -> bytes:
    """Sends bytes over a socket; answers all that comes back until the server closes it, or is silent."""
    reader, writer = await asyncio.open_connection(web.base_url.host, web.base_url.port)
    try:
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(pause)
        return await asyncio.wait_for(reader.read(), 30)
    except ConnectionError:
        return await reader.read()
    finally:
        writer.close()


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


HEAD = b"POST /v1/queues/q/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"


async def test_a_body_that_is_too_large_is_refused_before_it_is_read(serve: Serve):
    async with serve(limits=Limits(body=1_000)) as web:
        assert status(await raw(web, HEAD + b"Content-Length: 1000000000\r\n\r\n")) == 413
        chunk = b"400\r\n" + b" " * 1024 + b"\r\n"
        assert status(await raw(web, HEAD + b"Transfer-Encoding: chunked\r\n\r\n", chunk * 2)) == 413
        assert (await web.get("/livez")).status_code == 200


async def test_slow_bodies_and_heads_are_not_waited_for(serve: Serve):
    async with serve(limits=Limits(body_seconds=0.2, header_seconds=0.2)) as web:
        assert status(await raw(web, HEAD + b"Content-Length: 100\r\n\r\n", b'{"type"')) == 408
        assert status(await raw(web, b"GET /livez HT", b"TP/1.1\r\n", b"X-A: b\r\n", pause=0.05)) == 408
        assert status(await raw(web)) == 408


async def test_too_many_headers_are_refused(web: Client):
    headers = b"".join(b"X-%d: y\r\n" % number for number in range(100_000))
    assert status(await raw(web, b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n" + headers[:34_000])) == 431
    # The server does not read on, so that its answer may be lost; its memory is what matters.
    with suppress(ConnectionError):
        await raw(web, b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n", headers)
    assert (await web.get("/livez")).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"content-type": "text/plain"},
        {"content-type": "application/x-www-form-urlencoded"},
        {"content-type": "multipart/form-data; boundary=x"},
        {"content-type": "application/json; charset=utf-7"},
        {"content-type": "application/json", "content-encoding": "gzip"},
    ],
)
async def test_only_json_and_msgpack_are_read(web: Client, headers: dict[str, str]):
    assert (await web.post(JOBS, content=b'{"type": "task"}', headers=headers)).status_code == 415


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"\xef\xbb\xbf{}", 400),
        (b'{"type": "task"', 400),
        (b'{"type": "\xff"}', 400),
        (b'{"type": "task", "payload": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", 422),
        (b'{"type": "task", "payload": ' + b"[" * 70 + b"]" * 70 + b"}", 422),
        (b'{"type": "flow", "children": [' * 20_000 + b"]}" * 20_000, 422),
    ],
)
async def test_bodies_that_cannot_be_read_are_refused(web: Client, content: bytes, expected: int):
    path = "/v1/queues/q/flows" if b"children" in content else JOBS
    answer = await web.post(path, content=content, headers=JSON)
    assert (answer.status_code, answer.headers["content-type"]) == (expected, "application/problem+json")


@pytest.mark.parametrize(
    "path",
    [
        "/v1/queues/..%2f..%2fetc/jobs",
        "/v1/queues/a%00b/jobs",
        "/v1/queues/a%5Cb/jobs",
        "/v1/queues/q/jobs/..%2f..%2f..%2fetc%2fpasswd",
        "/v1/queues/q/jobs/%00",
        "/static/..%2f..%2fetc%2fpasswd",
        "//v1/queues",
        "/v1/queues/",
        "/v1/queues//jobs",
        "/v1/queues/q/schedules/%0a",
        "/v1/queues/{}",
        "/v1/queues/q/jobs/%7B%7D/log",
    ],
)
async def test_paths_that_lead_nowhere_are_not_found(web: Client, path: str):
    assert (
        status(await raw(web, f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())) == 404
    )


async def test_a_wrong_method_says_which_are_right(web: Client):
    answer = await web.put(JOBS, json={})
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, POST")


async def test_other_names_and_pages_of_other_sites_are_refused(web: Client, serve: Serve):
    assert (await web.get("/livez", headers={"host": "evil.example"})).status_code == 421
    assert (await web.get("/livez", headers={"host": "localhost:1"})).status_code == 200
    assert (await web.get("/livez", headers={"x-forwarded-host": "evil.example"})).status_code == 200
    job = {"type": "task"}
    for foreign in ({"origin": "https://evil.example"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"}):
        assert (await web.post(JOBS, json=job, headers=foreign)).status_code == 403
        answer = await web.get("/v1/stats", headers=foreign)
        assert not [name for name in answer.headers if name.startswith("access-control")]
    assert (await web.options(JOBS, headers={"origin": "https://evil.example"})).status_code == 405
    own = {"origin": str(web.base_url).rstrip("/"), "sec-fetch-site": "same-origin"}
    assert (await web.post(JOBS, json=job, headers=own)).status_code == 201
    async with serve(origins=["https://app.example"], hosts=["jobs.example"]) as other:
        page = {"origin": "https://app.example", "access-control-request-method": "POST"}
        preflight = await other.options(JOBS, headers=page)
        assert preflight.headers["access-control-allow-origin"] == "https://app.example"
        assert (await other.post(JOBS, json=job, headers={"origin": page["origin"]})).status_code == 201
        assert (await other.get("/livez", headers={"host": "jobs.example"})).status_code == 200


async def test_an_address_is_taken_from_trusted_proxies_alone(store: Store, make_token: MakeToken):
    await make_token("viewer")
    for trusted, seen in (((), "127.0.0.1"), (("127.0.0.1",), "203.0.113.9")):
        app = broker(store)
        async with (
            serving(app, Address("127.0.0.1", 0), trusted_proxies=trusted) as address,
            httpx.AsyncClient() as web,
        ):
            await web.get(f"{address.url}/v1/stats", headers={"x-forwarded-for": "203.0.113.9"})
            assert app.authenticator.failed_addresses() == [seen]


async def test_every_answer_has_its_headers(web: Client):
    for answer in (await web.get("/livez"), await web.get("/nothing"), await web.get("/v1/stats")):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["cache-control"] == "no-store"
        assert "server" not in answer.headers


async def test_a_job_of_another_queue_is_not_found(web: Client, make_token: MakeToken):
    added = await submit(web, "theirs")
    mine = await make_token("operator", queues=["mine"])
    assert (await web.get(f"/v1/queues/mine/jobs/{added['id']}", headers=mine)).status_code == 404
    assert (await web.get(f"/v1/queues/theirs/jobs/{added['id']}", headers=mine)).status_code == 403
    assert (await web.delete(f"/v1/queues/mine/jobs/{added['id']}", headers=mine)).status_code == 404


async def test_a_request_with_two_lengths_is_refused(web: Client):
    smuggled = b"Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nX"
    assert status(await raw(web, HEAD + smuggled)) == 400
    assert status(await raw(web, HEAD + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef")) == 400


async def test_pipelined_requests_are_answered_in_order(web: Client):
    get = b"GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n%s\r\n"
    answer = await raw(web, get % (b"/livez", b"") + get % (b"/nothing", b"Connection: close\r\n"))
    assert answer.count(b"HTTP/1.1 200") == answer.count(b"HTTP/1.1 404") == 1


async def test_logs_cannot_be_forged(web: Client, make_token: MakeToken, caplog: pytest.LogCaptureFixture):
    viewer = await make_token("viewer")
    with caplog.at_level(logging.DEBUG):
        await web.post("/v1/queues/q/jobs/a:b/cancel", headers=viewer)
        await raw(
            web, b"POST /v1/queues/q%0aWARNING%20forged/pause HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
        )
    assert [record for record in caplog.records if "audit" in record.getMessage()]
    assert not [record for record in caplog.records if "\n" in record.getMessage()]


class Failing(StoreProxy):
    """Fails as no store should."""

    async def do(self, command: Command[Any], now: Instant | None = None) -> Any:
        if isinstance(command, Count):
            raise RuntimeError("SELECT secret FROM /etc/passwd")  # noqa: TRY004 - as a driver may
        return await super().do(command, now)


async def test_a_fault_of_the_server_tells_nothing_but_an_id(store: Store, caplog: pytest.LogCaptureFixture):
    async with client_of(broker(Failing(store))) as web:
        answer = await web.get("/v1/queues/q")
    assert answer.status_code == 500
    assert "SELECT" not in answer.text
    assert "Traceback" not in answer.text
    assert answer.json()["id"] in caplog.text


async def test_a_filter_is_compared_and_never_executed(web: Client):
    await submit(web, type="abc", tags=["abc"])
    for pattern in ("a%", "a.c", "(a+)+$", "a*", "' OR '1'='1"):
        for field in ("type", "tag"):
            assert (await web.get(JOBS, params={field: pattern})).json()["jobs"] == []


class Holding(StoreProxy):
    """Holds reads up until they are let go."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.go = asyncio.Event()
        self.held = 0

    async def do(self, command: Command[Any], now: Instant | None = None) -> Any:
        if isinstance(command, Get):
            self.held += 1
            await self.go.wait()
        return await super().do(command, now)


async def test_under_load_completions_are_refused_last(store: Store):
    holding = Holding(store)
    async with client_of(broker(holding, limits=Limits(requests=8))) as web:
        await submit(web)
        [job] = await claim(web)
        reads = [asyncio.create_task(web.get(f"{JOBS}/any")) for _ in range(4)]
        while holding.held < 4:  # noqa: ASYNC110 - the other side is a server
            await asyncio.sleep(0.01)
        refused = await web.get("/v1/stats")
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        more = [asyncio.create_task(tell(web, {**job, "token": "x"}, "complete")) for _ in range(2)]
        while holding.held < 6:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.01)
        assert (await web.post(JOBS, json={"type": "task"})).status_code == 503
        assert (await web.get("/livez")).status_code == 200
        assert (await tell(web, job, "complete")).status_code == 204
        holding.go.set()
        assert {answer.status_code for answer in await asyncio.gather(*reads, *more)} == {404, 409}


async def test_a_token_has_its_rate(serve: Serve, make_token: MakeToken):
    one, other = await make_token("viewer"), await make_token("viewer")
    async with serve(limits=Limits(rate=0.5)) as web:
        assert (await web.get("/v1/stats", headers=one)).status_code == 200
        refused = await web.get("/v1/stats", headers=one)
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "2")
        assert (await web.get("/v1/stats", headers=other)).status_code == 200


async def test_connections_are_limited(serve: Serve):
    async with serve(limits=Limits(connections=1)) as web:
        assert (await web.get("/livez")).status_code == 200
        refused = await raw(web)
        assert (status(refused), b"retry-after" in refused) == (503, True)
        assert (await web.get("/livez")).status_code == 200


async def test_a_server_that_ends_does_not_wait_for_bodies_and_says_nothing(
    store: Store, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(bodies, "LAST_SECONDS", 0.05)
    async with AsyncExitStack() as server:
        address = await server.enter_async_context(serving(broker(store), Address("127.0.0.1", 0)))
        reader, writer = await asyncio.open_connection("127.0.0.1", address.port)
        writer.write(HEAD + b"Expect: 100-continue\r\nContent-Length: 100\r\n\r\n")
        # It asks for the body now.
        assert status(await reader.readuntil(b"\r\n\r\n")) == 100
        writer.write(b'{"type"')
        async with asyncio.timeout(GRACE):
            await server.aclose()
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
    assert status(answer) == 503
    assert b"retry-after: 1" in answer
    assert caplog.records == []


async def test_a_request_that_waits_for_a_store_that_went_away_is_answered(
    store: Store, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(store_watch, "INTERVAL", 0.02)

    class Away(StoreProxy):
        is_away = False

        async def do(self, command: Command[Any], now: Instant | None = None) -> Any:
            if self.is_away and isinstance(command, ReadClock):
                raise StoreUnavailable("redis://away", "cannot be reached")
            return await super().do(command, now)

    behind = Away(store)
    async with client_of(broker(behind)) as web:
        waiting = asyncio.create_task(web.post("/v1/queues/q/claim", json={"worker": "w", "wait": 50}))
        while not (await web.get("/v1/stats")).json()["waiting_requests"]:  # noqa: ASYNC110 - the other side is a server
            await asyncio.sleep(0.01)
        behind.is_away = True
        answer = await waiting
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        behind.is_away = False
        await submit(web)
        assert len(await claim(web, wait=50)) == 1


async def test_a_stopping_server_answers_those_that_wait(store: Store):
    async with AsyncExitStack() as server, httpx.AsyncClient(timeout=60) as web:
        address = await server.enter_async_context(serving(broker(store), Address("127.0.0.1", 0)))
        web.base_url = httpx.URL(address.url)
        waiting = asyncio.create_task(claim(web, wait=50))
        while not (await web.get("/v1/stats")).json()["waiting_requests"]:  # noqa: ASYNC110 - the other side is a server
            await asyncio.sleep(0.01)
        await server.aclose()
        assert await waiting == []
