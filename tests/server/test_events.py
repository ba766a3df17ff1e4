"""The events of a queue over HTTP, as server-sent events."""

from __future__ import annotations

import asyncio
import ctypes
import json
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import ExitStack
from typing import Any

import pytest

from ropeway import Queue
from ropeway.server import broker, serving
from ropeway.server.serving import Address
from ropeway.store.contract import Store
from tests.patience import PATIENCE

from .conftest import Client, MakeToken, Serve, client_of, until

EVENTS = "/v1/queues/mail/events"


async def messages(answer: Any) -> AsyncIterator[tuple[str, str, Any]]:
    """Id, type and data of each message."""
    lines: dict[str, str] = {}
    async for line in answer.aiter_lines():
        name, _, value = line.partition(": ")
        lines[name] = value
        if not line and "data" in lines:
            yield lines["id"], lines["event"], json.loads(lines["data"])
            lines = {}


async def take(stream: AsyncIterator[Any], count: int) -> list[Any]:
    async with asyncio.timeout(PATIENCE):
        return [await anext(stream) for _ in range(count)]


async def test_a_snapshot_what_happens_and_what_was_missed(web: Client, store: Store):
    queue = Queue("mail", store=store)
    async with web.stream("GET", EVENTS, params={"snapshot": True, "names": ["paused", "resumed"]}) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        stream = messages(answer)
        [(_, kind, snapshot)] = await take(stream, 1)
        await queue.add("welcome")
        await queue.pause()
        [(seen, name, _)] = await take(stream, 1)
        await stream.aclose()  # type: ignore[attr-defined]
    assert (kind, snapshot["counts"]["waiting"], name) == ("snapshot", 0, "paused")

    await queue.resume()
    async with web.stream("GET", EVENTS, headers={"last-event-id": seen}) as answer:
        stream = messages(answer)
        [(_, name, _)] = await take(stream, 1)
        await stream.aclose()  # type: ignore[attr-defined]
    assert name == "resumed"


@pytest.mark.parametrize(
    ("query", "headers", "status"),
    [
        ({"names": "complete"}, {}, 422),
        ({"after": "yesterday"}, {}, 422),
        ({"ping": "0"}, {}, 422),
        ({}, {"last-event-id": "yesterday"}, 400),
    ],
)
async def test_what_cannot_be_followed_is_refused_before_the_stream_begins(web: Client, query, headers, status):
    assert (await web.get(EVENTS, params=query, headers=headers)).status_code == status


async def test_a_token_follows_its_queues_alone(web: Client, make_token: MakeToken):
    token = await make_token("viewer", queues=["other"])
    assert (await web.get(EVENTS, headers=token)).status_code == 403


async def test_a_server_that_ends_ends_its_streams(serve: Serve, store: Store):
    app = broker(store)
    async with client_of(app) as web, asyncio.timeout(PATIENCE):
        answer = await web.send(web.build_request("GET", EVENTS), stream=True)
        lines = answer.aiter_lines()
        assert await anext(lines) == "retry: 2000"
        app.end_waits()
        assert [line async for line in lines] == [""]
    assert app.admission.waiting == 0


def vanish(connection: socket.socket) -> None:
    """Lets no packet in any more, by a filter of the kernel: nothing is acknowledged, and nothing is closed."""
    drop_all = ctypes.create_string_buffer(struct.pack("HBBI", 0x06, 0, 0, 0))
    so_attach_filter = 26
    connection.setsockopt(socket.SOL_SOCKET, so_attach_filter, struct.pack("HP", 1, ctypes.addressof(drop_all)))


@pytest.mark.parametrize("viewers", [50, pytest.param(1_000, marks=pytest.mark.deep)])
async def test_viewers_that_vanish_without_a_word_are_noticed(
    store: Store, viewers: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(serving, "UNACKNOWLEDGED", 0.5)
    app = broker(store)
    loop = asyncio.get_running_loop()
    async with serving.serving(app, Address("127.0.0.1", 0)) as address, asyncio.timeout(2 * PATIENCE):
        queue = app.queue("mail")

        async def watching(number: int) -> bool:
            return app.admission.waiting == len(queue.hub._subscriptions) == number

        with ExitStack() as opened:
            sockets = [opened.enter_context(socket.socket()) for _ in range(viewers)]
            for viewer in sockets:
                viewer.setblocking(False)
                await loop.sock_connect(viewer, (address.host, address.port))
                await loop.sock_sendall(viewer, f"GET {EVENTS} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n".encode())
            await until(lambda: watching(viewers))
            for viewer in sockets:
                vanish(viewer)
            # As a ping does when nothing happens.
            await queue.publish("news")
            await until(lambda: watching(0))
