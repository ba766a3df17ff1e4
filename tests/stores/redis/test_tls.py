"""TLS: whom the store trusts, and that it never does without."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import redis
import trustme

from ropeway import Queue
from ropeway.errors import InvalidOption, StoreRefused, StoreUnavailable
from ropeway.store.url import connect
from ropeway.testing.arrange import add
from ropeway.testing.factories import new_job
from tests.stores.network import Proxy, proxied
from tests.stores.servers import ServerProcess

from .conftest import OpenStore, StartServer


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def ca_file(authority: trustme.CA, tmp_path: Path) -> str:
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    return str(tmp_path / "ca.pem")


@pytest.fixture
def server(start_server: StartServer) -> ServerProcess:
    return start_server()


@asynccontextmanager
async def _speaking_tls(
    server: ServerProcess, certificate: trustme.LeafCert, clients: trustme.CA | None = None
) -> AsyncIterator[Proxy]:
    """What stands before the server shows this certificate, and wants one of clients from that authority."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    certificate.configure_cert(context)
    if clients is not None:
        clients.configure_trust(context)
        context.verify_mode = ssl.CERT_REQUIRED
    async with proxied(server, context) as proxy:
        yield proxy


async def test_jobs_go_through_tls(server: ServerProcess, authority: trustme.CA, ca_file: str):
    async with (
        _speaking_tls(server, authority.issue_cert("localhost")) as proxy,
        Queue("letters", proxy.url("localhost", ca_file=ca_file)) as queue,
    ):
        job = await queue.add("send", 1)

        assert await job.state() == "waiting"


async def test_jobs_of_threads_without_a_loop_go_through_tls(
    server: ServerProcess, authority: trustme.CA, ca_file: str
):
    async with (
        _speaking_tls(server, authority.issue_cert("localhost")) as proxy,
        Queue("letters", proxy.url("localhost", ca_file=ca_file)) as queue,
    ):
        for n in range(3):
            await asyncio.to_thread(queue.sync.add, "send", n)

        assert (await queue.counts())["waiting"] == 3


async def test_threads_without_a_loop_trust_nobody_else(server: ServerProcess, authority: trustme.CA, ca_file: str):
    async with _speaking_tls(server, authority.issue_cert("jobs.example")) as proxy:
        queue = Queue("letters", proxy.url("localhost", ca_file=ca_file))
        with pytest.raises(StoreRefused, match="Hostname mismatch"):
            await asyncio.to_thread(queue.sync.add, "send")
        await queue.close()


async def test_a_client_that_speaks_tls_is_followed(server: ServerProcess, authority: trustme.CA, ca_file: str):
    async with _speaking_tls(server, authority.issue_cert("localhost")) as proxy:
        store = connect(redis.Redis("localhost", proxy.port, ssl=True, ssl_ca_certs=ca_file))
        await add(store, new_job())
        await store.close()


async def test_a_certificate_of_our_own_is_shown(
    server: ServerProcess, authority: trustme.CA, ca_file: str, tmp_path: Path, open_store: OpenStore
):
    mine = authority.issue_cert("worker.example")
    mine.private_key_and_cert_chain_pem.write_to_path(tmp_path / "mine.pem")
    async with _speaking_tls(server, authority.issue_cert("localhost"), clients=authority) as proxy:
        url = proxy.url("localhost", ca_file=ca_file)
        with pytest.raises(StoreUnavailable):
            await open_store(url).open()

        await open_store(f"{url}&cert_file={tmp_path / 'mine.pem'}").open()


async def test_a_certificate_for_another_host_is_refused(
    server: ServerProcess, authority: trustme.CA, ca_file: str, open_store: OpenStore
):
    async with _speaking_tls(server, authority.issue_cert("jobs.example")) as proxy:
        with pytest.raises(StoreRefused, match="Hostname mismatch"):
            await open_store(proxy.url("localhost", ca_file=ca_file)).open()


async def test_a_certificate_that_has_expired_is_refused(
    server: ServerProcess, authority: trustme.CA, ca_file: str, open_store: OpenStore
):
    long_ago = datetime.now(UTC) - timedelta(days=30)
    old = authority.issue_cert("localhost", not_before=long_ago, not_after=long_ago + timedelta(days=1))
    async with _speaking_tls(server, old) as proxy:
        with pytest.raises(StoreRefused, match="expired"):
            await open_store(proxy.url("localhost", ca_file=ca_file)).open()


async def test_a_certificate_that_nobody_vouches_for_is_refused(
    server: ServerProcess, authority: trustme.CA, open_store: OpenStore
):
    async with _speaking_tls(server, authority.issue_cert("localhost")) as proxy:
        with pytest.raises(StoreRefused, match="not to be trusted"):
            await open_store(proxy.url("localhost")).open()


async def test_a_server_without_tls_is_not_spoken_to_in_the_clear(server: ServerProcess, open_store: OpenStore):
    async with proxied(server) as proxy:
        url = proxy.url("localhost", timeout="0.2").replace("redis://", "rediss://me:s3cret@")
        with pytest.raises(StoreUnavailable):
            await open_store(url).open()

    assert b"cmdstat_auth" not in server.ask("INFO", "commandstats")


async def test_a_missing_file_of_certificates_is_named(open_store: OpenStore):
    with pytest.raises(InvalidOption, match="nowhere"):
        await open_store("rediss://127.0.0.1:1/0?ca_file=/nowhere.pem").open()
