"""Primaries of a cluster that change while jobs run."""

from __future__ import annotations

import asyncio
import re

from msgspec.structs import replace

from ropeway.job.record import JobRecord
from ropeway.store.values import Settled
from ropeway.stores.redis import RedisStore
from ropeway.testing.arrange import add, claim, events_of, read
from ropeway.testing.factories import FOREIGN, QUEUE, claim_request, complete, new_job, new_jobs
from tests.stores.places import empty_folder
from tests.stores.servers import ClusterProcesses, ServerProcess
from tests.stores.waiting import until

from .conftest import OpenStore, insist

KEY = f"{{ropeway:{QUEUE}}}"


async def test_nothing_that_was_replicated_is_lost_or_done_twice_when_primaries_change(open_store: OpenStore):
    with empty_folder() as folder:
        cluster = ClusterProcesses(folder)
        try:
            await asyncio.to_thread(cluster.start)
            primary = next(node for node in cluster.nodes if not node.ask("GET", KEY).startswith(b"-MOVED"))
            replica = await asyncio.to_thread(cluster.add_replica, primary)
            store = open_store(cluster.url())
            await add(store, *new_jobs(300))

            done = await _run_jobs_while_it_hands_over(store, replica)
            # Now the roles are the other way round, and this one does not hand over.
            [held] = await claim(store, token="held")
            await add(store, new_job("last"))
            await until(lambda: _offset(primary) == _offset(replica))
            replica.kill()
            settled = await _settle(store, [held])

            assert [answer.verdict for answer in settled.answers] == ["done"]
            again = await store.settle(QUEUE, [complete(held), complete(done[0], token=FOREIGN)])
            assert [answer.verdict for answer in again.answers] == ["done", "lost"]
            assert (await read(store, "last")).state == "waiting"
            counts = await store.count(QUEUE)
            assert (counts["waiting"], counts["active"], counts["completed"]) == (1, 0, 300)
            completed = [id for id, _ in await events_of(store, "complete")]
            assert sorted(completed) == sorted({job.id for job in [*done, held]})
        finally:
            cluster.kill()


async def _run_jobs_while_it_hands_over(store: RedisStore, replica: ServerProcess) -> list[JobRecord]:
    """Runs all but one; answers them."""
    done: list[JobRecord] = []
    while len(done) < 299:
        claimed = await _claim(store, min(3, 299 - len(done)))
        await _settle(store, claimed)
        done += claimed
        if len(done) == 30:
            assert replica.ask("CLUSTER", "FAILOVER") == b"+OK\r\n"
    await until(lambda: b"role:master" in replica.ask("INFO", "replication"))
    return done


async def _claim(store: RedisStore, limit: int) -> list[JobRecord]:
    request = claim_request(limit)
    return (await insist(lambda repeat: store.claim(replace(request, repeat=repeat)))).jobs


async def _settle(store: RedisStore, jobs: list[JobRecord]) -> Settled:
    return await insist(lambda _: store.settle(QUEUE, [complete(job) for job in jobs]))


def _offset(server: ServerProcess) -> str:
    """How far a replica has followed, or a primary has gone."""
    found = re.search(r"(?:slave|master)_repl_offset:(\d+)", server.ask("INFO", "replication").decode())
    assert found is not None
    return found[1]
