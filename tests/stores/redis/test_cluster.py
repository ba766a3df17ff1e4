"""What only a cluster can do wrong."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from ropeway.errors import StoreUnavailable
from ropeway.job.record import NewJob
from ropeway.store.values import StallRules
from ropeway.stores.redis import RedisStore
from ropeway.testing.arrange import add, claim
from ropeway.testing.factories import NOW, QUEUE, complete, new_job, new_jobs
from tests.stores.places import empty_folder
from tests.stores.servers import ClusterProcesses, new_prefix, shared_cluster
from tests.stores.waiting import until

from .conftest import OpenStore


@pytest.fixture
def store(open_store: OpenStore) -> RedisStore:
    return open_store(shared_cluster().url(new_prefix()))


@pytest.fixture
def cluster() -> Iterator[ClusterProcesses]:
    with empty_folder() as folder:
        cluster = ClusterProcesses(folder)
        cluster.start()
        yield cluster
        cluster.kill()


async def test_queues_live_on_different_servers(store: RedisStore):
    names = [f"queue-{n}" for n in range(20)]
    await store.add([[new_job(queue=name)] for name in names])

    has_jobs = [node.ask("DBSIZE") != b":0\r\n" for node in shared_cluster().nodes]

    assert has_jobs == [True, True, True]
    assert await store.queues() == sorted(names)


async def test_a_bundle_over_several_slots_is_stored_whole_or_not_at_all(store: RedisStore):
    names = [f"queue-{n}" for n in range(6)]
    await store.add([[new_job("taken", queue=names[3])]], now=NOW)
    bundle = [new_job("x", queue=name) for name in names]

    [refused] = await store.add([[*bundle, new_job("taken", queue=names[3], data="2")]], now=NOW)
    [stored] = await store.add([bundle], now=NOW)

    assert [answer.verdict for answer in refused] == ["skipped"] * 6 + ["conflict"]
    assert [answer.verdict for answer in stored] == ["created"] * 6
    assert [(await store.count(name))["waiting"] for name in names] == [1, 1, 1, 2, 1, 1]


async def test_a_server_that_was_emptied_learns_of_its_queues_by_a_bundle_over_several(
    cluster: ClusterProcesses, open_store: OpenStore
):
    store = open_store(cluster.url())
    bundles = [[new_job("a", queue="one"), new_job("b", queue="two")], [new_job("c", queue="three")]]
    await store.add(bundles)
    for node in cluster.nodes:
        node.ask("FLUSHALL")

    await store.add(bundles)

    assert await store.queues() == ["one", "three", "two"]


async def test_jobs_that_run_while_their_slot_moves_are_neither_lost_nor_run_twice(
    cluster: ClusterProcesses, open_store: OpenStore
):
    store = open_store(cluster.url())
    await add(store, *new_jobs(300))
    ran: list[str] = []

    async def work() -> None:
        while held := await claim(store, 3):
            ran.extend(job.id for job in held)
            await store.settle(QUEUE, [complete(job) for job in held], now=NOW)
            await asyncio.sleep(0.001)

    moving = asyncio.to_thread(_move_slot, cluster, f"{{ropeway:{QUEUE}}}")
    await asyncio.gather(work(), moving)

    assert len(ran) == len(set(ran)) == 300
    assert (await store.count(QUEUE))["completed"] == 300


async def test_parcels_for_a_node_that_hangs_hold_up_no_others(open_store: OpenStore):
    with empty_folder() as folder:
        cluster = ClusterProcesses(folder, 3, "--cluster-require-full-coverage", "no")
        try:
            await asyncio.to_thread(cluster.start)
            home, hung, well = (cluster.queue_on(node) for node in cluster.nodes)
            store = open_store(cluster.url(timeout="60"))
            for number, to in enumerate((hung, well)):
                await _leave_in_outbox(store, [new_job(f"{number}", queue=home), new_job("x", queue=to)])
            os.kill(cluster.nodes[1].pid, signal.SIGSTOP)

            await until(lambda: _ticked_until_there(store, home, well))

            os.kill(cluster.nodes[1].pid, signal.SIGCONT)
            await until(lambda: _ticked_until_there(store, home, hung))
        finally:
            cluster.kill()


async def _leave_in_outbox(store: RedisStore, bundle: list[NewJob]) -> None:
    """As a producer does that dies before it delivers."""
    call = store._executor.call

    async def instead(script: str, keys: tuple[str, ...], *arguments: Any) -> Any:
        if script == "receive":
            raise StoreUnavailable(store.url, "on purpose")
        return await call(script, keys, *arguments)

    store._executor.call = instead  # type: ignore[method-assign]  # the one way to be between two trips
    with pytest.raises(StoreUnavailable):
        await store.add([bundle])
    store._executor.call = call  # type: ignore[method-assign]  # as before


async def _ticked_until_there(store: RedisStore, home: str, queue: str) -> bool:
    await store.tick(home, StallRules())
    return (await store.count(queue))["waiting"] == 1


def _move_slot(cluster: ClusterProcesses, key: str) -> None:
    """Moves a slot key by key, as resharding does."""
    slot = cluster.nodes[0].ask("CLUSTER", "KEYSLOT", key)[1:-2].decode()
    ids = [node.ask("CLUSTER", "MYID").split(b"\r\n")[1].decode() for node in cluster.nodes]
    number = int(slot) * len(ids) // 16384
    source, target = cluster.nodes[number], cluster.nodes[(number + 1) % len(ids)]
    target_id = ids[(number + 1) % len(ids)]
    assert target.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", ids[number]) == b"+OK\r\n"
    assert source.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", target_id) == b"+OK\r\n"
    while keys := source.words("CLUSTER", "GETKEYSINSLOT", slot, "1"):
        moved = source.ask("MIGRATE", "127.0.0.1", str(target.port), keys[0], "0", "5000")
        assert moved in (b"+OK\r\n", b"+NOKEY\r\n"), moved
    for node in (target, source, *cluster.nodes):
        node.ask("CLUSTER", "SETSLOT", slot, "NODE", target_id)
