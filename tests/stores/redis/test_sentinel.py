"""Sentinels, and a primary that changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from ropeway.errors import StoreRefused
from ropeway.testing.arrange import add, claim
from ropeway.testing.factories import QUEUE, claim_request, complete, new_job, new_jobs
from tests.stores.servers import SentinelProcess, ServerProcess, free_port
from tests.stores.waiting import until

from .conftest import OpenStore, StartServer, insist


async def _replicated(primary: ServerProcess, replica: ServerProcess, sentinel: SentinelProcess) -> None:
    """Waits until the replica has all that the primary has, and the sentinel knows of it."""
    await until(lambda: sentinel.words("SENTINEL", "REPLICAS", "main"))
    await until(lambda: b"master_link_status:up" in replica.ask("INFO", "replication"))
    await until(lambda: replica.ask("DBSIZE") == primary.ask("DBSIZE"))


async def test_work_goes_on_when_the_primary_dies_and_its_replica_takes_over(
    start_server: StartServer, open_store: OpenStore, tmp_path: Path
):
    primary = start_server("--repl-diskless-sync-delay", "0", port=free_port())
    replica = start_server("--replicaof", "127.0.0.1", str(primary.port), port=free_port())
    sentinel = SentinelProcess(tmp_path, primary)
    sentinel.start()
    try:
        store = open_store(f"redis+sentinel://127.0.0.1:{sentinel.port}/main/0")
        await add(store, *new_jobs(4))
        [held] = await claim(store, 1, token="t")
        await _replicated(primary, replica, sentinel)

        primary.kill()
        settled = await insist(
            lambda repeat: store.settle(QUEUE, [complete(held)], claim_request(3, token="u", repeat=repeat))
        )

        assert [answer.verdict for answer in settled.answers] == ["done"]
        assert settled.claimed is not None
        assert len(settled.claimed.jobs) == 3
        await add(store, new_job("after"))
    finally:
        sentinel.kill()


async def test_an_unknown_service_is_named(start_server: StartServer, open_store: OpenStore, tmp_path: Path):
    sentinel = SentinelProcess(tmp_path, start_server(port=free_port()))
    sentinel.start()
    try:
        with pytest.raises(StoreRefused, match="no service 'other'"):
            await open_store(f"redis+sentinel://127.0.0.1:{sentinel.port}/other/0").open()
    finally:
        sentinel.kill()
