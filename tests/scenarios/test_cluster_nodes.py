"""Nodes of a cluster that hang, die or half move a slot, under workers of queues on several nodes.

Whoever waited for the node in trouble would wait for longer than these tests do: calls have a minute.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from ropeway import JobHandle, Queue, connect
from ropeway.store.contract import Store
from tests.patience import PATIENCE
from tests.stores.places import empty_folder
from tests.stores.servers import ClusterProcesses, ServerProcess

from .harness import AppProcess, Fleet, Gate, until


class Scene(NamedTuple):
    cluster: ClusterProcesses
    url: str
    records: ServerProcess
    """The node that has the list of queues and the records."""
    sick: ServerProcess
    well: ServerProcess


@pytest.fixture
def scene() -> Iterator[Scene]:
    with empty_folder() as folder:
        cluster = ClusterProcesses(folder, 3, "--cluster-require-full-coverage", "no")
        try:
            cluster.start()
            records = cluster.holder("{ropeway}")
            sick, well = (node for node in cluster.nodes if node is not records)
            yield Scene(cluster, cluster.url(timeout="60"), records, sick, well)
        finally:
            cluster.kill()


@pytest.fixture
async def store(scene: Scene) -> AsyncIterator[Store]:
    store = connect(scene.url)
    yield store
    await store.close()


@pytest.fixture
def fleet(scene: Scene, tmp_path: Path) -> Iterator[Fleet]:
    fleet = Fleet(scene.url, scene.cluster.queue_on(scene.sick), tmp_path)
    yield fleet
    fleet.close()


def hang(scene: Scene, _: str) -> None:
    os.kill(scene.sick.pid, signal.SIGSTOP)


def die(scene: Scene, _: str) -> None:
    scene.sick.kill()


def half_move(scene: Scene, queue: str) -> None:
    """Moves one of the queue's keys to another node, and leaves it so."""
    key = f"{{ropeway:{queue}}}"
    slot = scene.sick.ask("CLUSTER", "KEYSLOT", key)[1:-2].decode()
    source, target = (_id_of(node) for node in (scene.sick, scene.well))
    assert scene.well.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", source) == b"+OK\r\n"
    assert scene.sick.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", target) == b"+OK\r\n"
    assert scene.sick.ask("MIGRATE", "127.0.0.1", str(scene.well.port), key, "0", "5000") == b"+OK\r\n"


def _id_of(node: ServerProcess) -> str:
    return node.ask("CLUSTER", "MYID").split(b"\r\n")[1].decode()


FAULTS: Final[dict[str, Callable[[Scene, str], None]]] = {"hangs": hang, "dies": die, "half moves a slot": half_move}


@pytest.mark.parametrize("fault", FAULTS)
async def test_queues_of_other_nodes_go_on_when_a_node(
    scene: Scene, store: Store, fleet: Fleet, tmp_path: Path, fault: str
):
    troubled = Queue(scene.cluster.queue_on(scene.sick), store=store)
    others = [Queue(scene.cluster.queue_on(node), store=store) for node in (scene.well, scene.records)]
    # Its node fails when it is to hear how these ended: once for each of the trips that were shared by all queues.
    stuck = [(await troubled.add("hold", str(gate)), gate) for gate in (Gate(tmp_path / "1"), Gate(tmp_path / "2"))]
    renewed = [(await queue.add("hold", str(gate)), gate) for queue, gate in _gates(others, tmp_path)]
    worker = fleet.start(orders={"more_queues": [queue.name for queue in others]}, concurrency=6, lock_duration=3)
    for job, _ in [*stuck, *renewed]:
        await fleet.running_in(job.id)

    FAULTS[fault](scene, troubled.name)
    for job, gate in stuck:
        gate.open()
        await worker.until(partial(_has_left, worker, job.id), "its end")

    for queue in others:
        new = await queue.add("nap", 0.001)
        await until(partial(_is_completed, new), "the end of a new job")
    for job, gate in renewed:
        until_now = (await job.refresh()).lock_until
        await until(partial(_is_renewed, job, until_now), "a renewal")
        gate.open()
        await until(partial(_is_completed, job), "the end of a job that was held")
        assert len(fleet.starts(job.id)) == 1
    assert worker.exit_code is None


def _has_left(worker: AppProcess, id: str) -> bool:
    return bool(worker.wrote("end", id) or worker.wrote("stopped", id))


def _gates(queues: list[Queue], folder: Path) -> Iterator[tuple[Queue, Gate]]:
    return ((queue, Gate(folder / queue.name)) for queue in queues)


async def _is_completed(job: JobHandle) -> bool:
    return (await job.refresh()).state == "completed"


async def _is_renewed(job: JobHandle, since: object) -> bool:
    return (await job.refresh()).lock_until != since


async def test_producers_and_workers_begin_without_the_node_of_the_records(scene: Scene, fleet: Fleet):
    name = scene.cluster.queue_on(scene.sick)
    os.kill(scene.records.pid, signal.SIGSTOP)

    # Neither has been there before.
    async with Queue(name, scene.url) as queue:
        job = await queue.add("nap", 0.001)
        worker = fleet.start()
        await until(partial(_is_completed, job), "the end of the job")

        os.kill(scene.records.pid, signal.SIGCONT)
        await until(partial(_has_queue, queue), "that the queue is listed")
        await until(queue.workers, "that the worker is seen")
    assert worker.terminate()
    assert await worker.exit() == 0


async def _has_queue(queue: Queue) -> bool:
    return queue.name in await queue.store.queues()


async def test_a_queue_whose_producer_is_gone_is_listed_by_a_worker(scene: Scene, fleet: Fleet):
    name = scene.cluster.queue_on(scene.sick)
    os.kill(scene.records.pid, signal.SIGSTOP)
    async with Queue(name, scene.url) as producer:
        id = (await producer.add("nap", 0.001)).id
    os.kill(scene.records.pid, signal.SIGCONT)

    async with Queue(name, scene.url) as queue:
        assert not await _has_queue(queue)
        worker = fleet.start()
        await worker.until(lambda: worker.wrote("end", id), "the end of the job")
        await until(partial(_has_queue, queue), "that the queue is listed")
    assert worker.exit_code is None


async def test_a_worker_takes_up_a_queue_whose_node_was_away_when_it_started(scene: Scene, store: Store, fleet: Fleet):
    troubled, other = (Queue(scene.cluster.queue_on(node), store=store) for node in (scene.sick, scene.well))
    waiting = await troubled.add("nap", 0.001)
    os.kill(scene.sick.pid, signal.SIGSTOP)

    worker: AppProcess = fleet.start(orders={"more_queues": [other.name]})
    job = await other.add("nap", 0.001)
    await until(partial(_is_completed, job), "the end of a job on a node that answers")
    os.kill(scene.sick.pid, signal.SIGCONT)

    await until(partial(_is_completed, waiting), "the end of the job on the node that was away")
    assert worker.exit_code is None


async def test_a_seed_that_hangs_keeps_nobody_from_the_next(scene: Scene):
    first = scene.cluster.nodes[0]
    name = scene.cluster.queue_on(scene.cluster.nodes[1])
    os.kill(first.pid, signal.SIGSTOP)

    async with asyncio.timeout(PATIENCE), Queue(name, scene.url) as queue:
        assert (await queue.counts())["waiting"] == 0


async def test_a_queue_is_woken_while_another_node_hangs(scene: Scene, store: Store):
    for node, other in ((scene.well, scene.sick), (scene.sick, scene.well)):
        name = scene.cluster.queue_on(node)
        listener = store.listen("jobs", [name])
        # The first wake says that it is heard for.
        await listener.wait()
        os.kill(other.pid, signal.SIGSTOP)
        async with Queue(name, scene.url) as queue:
            await queue.add("nap")
            assert await listener.wait(PATIENCE)
        os.kill(other.pid, signal.SIGCONT)
        listener.close()
