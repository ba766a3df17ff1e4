"""Answers that are not those of the store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme

from ropeway import Queue
from ropeway.errors import (
    NotConnected,
    PayloadTooLarge,
    RopewayError,
    StoreBusy,
    StoreError,
    StoreRefused,
    StoreUnavailable,
    StoreVersion,
)
from ropeway.server.tokens import create_token
from ropeway.store.contract import Store
from ropeway.store.url import connect
from ropeway.testing.factories import new_job

from .conftest import Foreign, answer, served

CLOCK = answer("200 OK", "\x05")


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[Store]:
    store = connect(url)
    try:
        yield store
    finally:
        await store.close()


async def error_of(url: str, kind: type[RopewayError]) -> str:
    async with connected(url) as store:
        with pytest.raises(kind) as raised:
            await store.clock()
    assert raised.type is kind
    return str(raised.value)


async def test_tokens_decide_and_refusals_name_the_variable(behind: Store, monkeypatch: pytest.MonkeyPatch):
    producer, _ = await create_token(behind, ["producer"], queues=["letters"])
    async with served(behind) as url:
        assert "wants a token: set ROPEWAY_TOKEN" in await error_of(url, StoreRefused)
        assert "refuses this token: set ROPEWAY_TOKEN" in await error_of(url.replace("//", "//rw_no@"), StoreRefused)
        monkeypatch.setenv("ROPEWAY_TOKEN", producer)
        async with connected(url) as store:
            await store.add([[new_job(queue="letters")]])
            with pytest.raises(StoreRefused, match="lacks the right to operate: set ROPEWAY_TOKEN") as raised:
                await store.cancel("letters", ["a"])
            with pytest.raises(StoreRefused, match="does not reach the queue 'parcels': set ROPEWAY_TOKEN"):
                await store.count("parcels")
    assert producer not in str(raised.value)


async def test_another_version_is_told(behind: Store, monkeypatch: pytest.MonkeyPatch):
    async with served(behind) as url:
        monkeypatch.setattr("ropeway.stores.remote.calls.encode_command", lambda *_: b"\x93\x09\xc0\xc0")
        assert "run the same version of Ropeway here and there" in await error_of(url, StoreVersion)


async def test_an_answer_that_cannot_be_read_is_another_version():
    async with Foreign(answer("200 OK", "\xa1no number")) as server:
        assert "run the same version" in await error_of(server.url, StoreVersion)


async def test_a_job_that_is_too_large_for_the_server_says_so(behind: Store):
    async with served(behind) as url, connected(url) as store:
        bundle = [new_job(data='"' + "x" * 1_000_000 + '"') for _ in range(17)]
        with pytest.raises(PayloadTooLarge) as raised:
            await store.add([bundle])
        assert raised.value.limit == 16 * 1024 * 1024
        await store.clock()


@pytest.mark.parametrize(
    ("status", "kind", "said"),
    [
        ("404 Not Found", StoreRefused, "no server of Ropeway, it answers 404"),
        ("308 Permanent Redirect", StoreRefused, "refers to https://elsewhere.example/, which is not followed"),
        ("407 Proxy Authentication Required", StoreRefused, "it answers 407"),
        ("502 Bad Gateway", StoreUnavailable, "failed with 502; whether the call took effect is unknown"),
        ("503 Service Unavailable", StoreBusy, "takes no requests now"),
    ],
)
async def test_answers_of_other_servers(status: str, kind: type[StoreError], said: str):
    headers = ("location: https://elsewhere.example/", "retry-after: 60", "content-type: text/html")
    async with Foreign(answer(status, "<h1>no</h1>", *headers)) as server:
        assert said in await error_of(server.url, kind)
    assert len(server.requests) == 1


async def test_what_does_not_speak_http_is_unavailable():
    async with Foreign("220 mail.example ESMTP\r\n\r\n") as server:
        assert "its answer is not HTTP" in await error_of(server.url, StoreUnavailable)


async def test_a_busy_server_is_asked_again_when_it_says_so():
    busy = answer("503 Service Unavailable", "", "retry-after: 0")
    async with Foreign(busy, busy.replace("503", "429"), CLOCK) as server, connected(server.url) as store:
        assert await store.clock() == 5
    assert len(server.requests) == 3


async def test_nobody_there_is_told_at_once_and_nothing_was_sent():
    assert "127.0.0.1:1 cannot be reached" in await error_of("http://127.0.0.1:1", NotConnected)


class TestTls:
    @pytest.fixture
    def authority(self, tmp_path: Path) -> tuple[trustme.CA, str]:
        authority = trustme.CA()
        authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
        return authority, str(tmp_path / "ca.pem")

    def files(self, authority: trustme.CA, folder: Path, name: str, until: datetime | None = None) -> dict[str, str]:
        certificate = authority.issue_cert(name, not_after=until)
        certificate.private_key_pem.write_to_path(str(folder / "key.pem"))
        certificate.cert_chain_pems[0].write_to_path(str(folder / "cert.pem"))
        return {"ssl_certfile": str(folder / "cert.pem"), "ssl_keyfile": str(folder / "key.pem")}

    async def test_jobs_go_over_tls(self, behind: Store, tmp_path: Path, authority: tuple[trustme.CA, str]):
        async with (
            served(behind, **self.files(authority[0], tmp_path, "localhost")) as url,
            Queue("letters", f"{url}?ca_file={authority[1]}") as queue,
        ):
            await queue.add("send")
            assert (await queue.counts())["waiting"] == 1

    @pytest.mark.parametrize("wrong", ["nobody we trust", "another name", "expired"])
    async def test_a_certificate_that_is_not_to_be_trusted_is_refused(
        self, behind: Store, tmp_path: Path, authority: tuple[trustme.CA, str], wrong: str
    ):
        name = "elsewhere.example" if wrong == "another name" else "localhost"
        ca = trustme.CA() if wrong == "nobody we trust" else authority[0]
        until = datetime.now(UTC) - timedelta(days=1) if wrong == "expired" else None
        async with served(behind, **self.files(ca, tmp_path, name, until)) as url:
            assert "is not to be trusted" in await error_of(f"{url}?ca_file={authority[1]}", StoreRefused)

    async def test_nothing_is_sent_in_the_clear_to_a_server_without_tls(self, behind: Store):
        async with served(behind) as url:
            said = await error_of(url.replace("http:", "https:"), NotConnected)
        assert "does not speak TLS" in said
