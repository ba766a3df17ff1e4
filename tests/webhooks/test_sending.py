"""Sending one message to receivers that are slow, hostile or gone."""

from __future__ import annotations

import asyncio
import gzip
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from ropeway.webhooks import connections
from ropeway.webhooks.connections import Connections
from ropeway.webhooks.failures import Refused, Unreachable
from ropeway.webhooks.resolving import MOST_LOOKUPS
from ropeway.webhooks.sending import EXCERPT, Sender

from .receiver import Receiver, Request, plain, receiving


async def send(receiver: Receiver, *, deadline: float = 10) -> tuple[int, bytes]:
    sender = Sender(deadline=deadline)
    try:
        reply = await sender.send(receiver.url, [("webhook-id", "1")], b"{}", receiver.allowed)
        return reply.status, reply.excerpt
    finally:
        sender.close()


async def test_connections_are_used_again(receiver: Receiver):
    sender = Sender()
    for _ in range(3):
        await sender.send(receiver.url, [], b"{}", receiver.allowed)
    assert (len(receiver.requests), receiver.connections) == (3, 1)
    sender.close()


async def test_a_kept_connection_that_the_receiver_closed_costs_nothing_but_a_new_one(receiver: Receiver):
    closed = asyncio.Event()

    async def answer_and_close(_: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(plain())
        await writer.drain()
        await closed.wait()
        writer.close()

    receiver.answers = [answer_and_close, plain()]
    sender = Sender()
    await sender.send(receiver.url, [], b"{}", receiver.allowed)
    closed.set()
    reply = await sender.send(receiver.url, [], b"{}", receiver.allowed)
    assert reply.status == 200
    sender.close()


async def test_a_receiver_that_never_answers_is_given_up_at_the_deadline(receiver: Receiver):
    async def never(_: Request, __: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    receiver.answers = [never]
    with pytest.raises(Unreachable, match="did not answer within"):
        await send(receiver, deadline=0.05)


async def test_a_receiver_that_sends_a_byte_at_a_time_is_given_up_at_the_deadline(receiver: Receiver):
    async def slowly(_: Request, writer: asyncio.StreamWriter) -> None:
        for byte in plain():
            writer.write(bytes([byte]))
            await asyncio.sleep(0.01)

    receiver.answers = [slowly]
    with pytest.raises(Unreachable, match="did not answer within"):
        await send(receiver, deadline=0.1)


async def test_the_status_counts_if_the_body_does_not_end(receiver: Receiver):
    async def endless(_: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\nbeginning")
        await asyncio.Event().wait()

    receiver.answers = [endless]
    assert await send(receiver, deadline=0.1) == (200, b"beginning")


async def test_of_a_large_answer_little_is_read(receiver: Receiver):
    sent = 0

    async def flood(_: Request, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\n")
        while sent < 1_000_000_000:
            writer.write(b"x" * 100_000)
            sent += 100_000
            await writer.drain()

    receiver.answers = [flood]
    status, excerpt = await send(receiver)
    assert (status, excerpt) == (200, b"x" * EXCERPT)
    assert sent < 100_000_000, "it was closed, whatever lies in buffers of the system"


async def test_a_compressed_answer_is_not_decompressed(receiver: Receiver):
    bomb = gzip.compress(bytes(10_000_000))
    receiver.answers = [plain("200 OK", bomb, "content-encoding: gzip")]
    status, excerpt = await send(receiver)
    assert (status, excerpt) == (200, bomb[:EXCERPT])


async def test_headers_without_end_are_given_up(receiver: Receiver):
    async def headers(_: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n")
        for number in range(10_000):
            writer.write(f"x-{number}: {'y' * 40}\r\n".encode())
        await writer.drain()

    receiver.answers = [headers]
    with pytest.raises(Unreachable):
        await send(receiver)


@pytest.mark.parametrize("answer", [b"", b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 1, 2\r\n\r\n"])
async def test_what_is_no_http_is_an_error(receiver: Receiver, answer: bytes):
    async def close(_: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        writer.close()

    receiver.answers = [close]
    with pytest.raises(Unreachable):
        await send(receiver)


async def test_redirects_are_not_followed(receiver: Receiver):
    receiver.answers = [plain("307 Elsewhere", b"", f"location: http://localhost:{receiver.port}/secret")]
    assert (await send(receiver))[0] == 307
    assert len(receiver.requests) == 1


async def test_lookups_that_hang_are_given_up_and_hold_up_nobody(monkeypatch: pytest.MonkeyPatch):
    answers = threading.Event()
    asked: list[str] = []

    def hang(host: str, *_: object, **__: object) -> list[object]:
        asked.append(host)
        answers.wait(60)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    sender = Sender(deadline=0.2)
    try:
        sent = [sender.send(f"https://{number}.example.com/", [], b"{}", ()) for number in range(MOST_LOOKUPS + 5)]
        ends = await asyncio.gather(*sent, return_exceptions=True)
        assert {str(end) for end in ends} == {"it did not answer within 0.2 s"}
        assert len(asked) == MOST_LOOKUPS
        # Threads that asyncio shares among all are free.
        assert await asyncio.to_thread(lambda: "at once") == "at once"
    finally:
        answers.set()
    with pytest.raises(Unreachable, match="has no address"):
        await Sender().send("https://example.com/", [], b"{}", ())


async def test_a_name_that_leads_to_a_private_address_is_refused_also_if_only_one_of_its_addresses_is_private():
    async def resolve(_: str, __: int) -> list[str]:
        return ["93.184.216.34", "169.254.169.254"]

    with pytest.raises(Refused, match="not public"):
        await Sender(Connections(resolve)).send("https://example.com/", [], b"{}", ())


async def test_what_was_checked_is_what_is_connected_to(monkeypatch: pytest.MonkeyPatch):
    """A name that leads elsewhere when it is resolved again is resolved only once."""
    asked: list[str] = []
    connected: list[tuple[str, str]] = []

    async def rebinding(host: str, _: int) -> list[str]:
        asked.append(host)
        return ["93.184.216.34"] if len(asked) == 1 else ["169.254.169.254"]

    async def connect(host: str, _: int, *, server_hostname: str, **__: object) -> None:
        connected.append((host, server_hostname))
        raise OSError("not in this test")

    monkeypatch.setattr(asyncio, "open_connection", connect)
    with pytest.raises(Unreachable):
        await Sender(Connections(rebinding)).send("https://example.com/", [], b"{}", ())
    assert (asked, connected) == (["example.com"], [("93.184.216.34", "example.com")])


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1/", "https://[::ffff:127.0.0.1]/", "https://u@example.com/", "x\r\ny"]
)
async def test_the_url_is_checked_again_when_it_is_sent(url: str):
    with pytest.raises(Refused):
        await Sender().send(url, [], b"{}", ())


async def test_proxies_of_the_environment_are_ignored(receiver: Receiver, monkeypatch: pytest.MonkeyPatch):
    for name in ("http_proxy", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert (await send(receiver))[0] == 200


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[trustme.CA]:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    connections._tls.cache_clear()
    yield authority
    connections._tls.cache_clear()


def _server(authority: trustme.CA, name: str) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(name).configure_cert(context)
    return context


async def test_the_certificate_must_be_that_of_the_name(authority: trustme.CA):
    async def resolve(_: str, __: int) -> list[str]:
        return ["127.0.0.1"]

    for name, is_right in (("hooks.example.com", True), ("other.example.com", False)):
        async with receiving(_server(authority, name)) as receiver:
            receiver.host = "hooks.example.com"
            sender = Sender(Connections(resolve))
            if is_right:
                assert (await sender.send(receiver.url, [], b"{}", receiver.allowed)).status == 200
            else:
                with pytest.raises(Unreachable, match="certificate is not valid"):
                    await sender.send(receiver.url, [], b"{}", receiver.allowed)
            sender.close()
