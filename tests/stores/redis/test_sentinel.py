"""Sentinels, and a primary that changes."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple, TypeAlias

import pytest

from ropeway import Queue
from ropeway.errors import NotConnected, StoreRefused
from ropeway.stores.redis import RedisStore
from ropeway.stores.redis.link import Link
from ropeway.stores.redis.primary import PrimaryConnection, Sentinels
from ropeway.stores.redis.sentinel import View
from ropeway.stores.redis.target import Target
from ropeway.testing.arrange import add, claim, read
from ropeway.testing.conformance.listen import calm, hears
from ropeway.testing.factories import QUEUE, claim_request, complete, new_job, new_jobs
from tests.patience import PATIENCE
from tests.stores.servers import SentinelProcess, ServerProcess, free_port
from tests.stores.waiting import until

from .conftest import OpenStore, StartServer, insist, noticed


class Watched(NamedTuple):
    """A primary and its replica, and a sentinel that decides alone."""

    primary: ServerProcess
    replica: ServerProcess
    sentinel: SentinelProcess

    @property
    def url(self) -> str:
        return f"redis+sentinel://127.0.0.1:{self.sentinel.port}/main/0"

    async def replicated(self) -> None:
        """Waits until the replica has all that the primary has, and the sentinel knows of it."""
        await until(lambda: self.sentinel.words("SENTINEL", "REPLICAS", "main"))
        await until(lambda: b"master_link_status:up" in self.replica.ask("INFO", "replication"))
        await until(lambda: self.replica.ask("DBSIZE") == self.primary.ask("DBSIZE"))

    def has_switched(self) -> bool:
        named = self.sentinel.words("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "main")
        return named[1] == str(self.replica.port)

    def replace_primary_while_this_process_stands_still(self) -> None:
        """Then the old one goes on, and knows nothing of it."""
        os.kill(self.primary.pid, signal.SIGSTOP)
        _stand_still_until(self.has_switched)
        os.kill(self.primary.pid, signal.SIGCONT)


def _stand_still_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


StartWatched: TypeAlias = Callable[..., Watched]


@pytest.fixture
async def start_watched(start_server: StartServer, tmp_path: Path) -> AsyncIterator[StartWatched]:
    """Takes options of the primary."""
    made: list[SentinelProcess] = []

    def start(*options: str) -> Watched:
        primary = start_server("--repl-diskless-sync-delay", "0", *options, port=free_port())
        replica = start_server("--replicaof", "127.0.0.1", str(primary.port), port=free_port())
        made.append(SentinelProcess(tmp_path, primary))
        made[-1].start()
        return Watched(primary, replica, made[-1])

    yield start
    for sentinel in made:
        sentinel.kill()


@pytest.fixture
def watched(start_watched: StartWatched) -> Watched:
    return start_watched()


@asynccontextmanager
async def in_the(server: ServerProcess) -> AsyncIterator[RedisStore]:
    store = RedisStore.from_url(server.url())
    yield store
    await store.close()


async def test_work_goes_on_when_the_primary_dies_and_its_replica_takes_over(watched: Watched, open_store: OpenStore):
    store = open_store(watched.url)
    await add(store, *new_jobs(4))
    [held] = await claim(store, 1, token="t")
    await watched.replicated()

    watched.primary.kill()
    settled = await insist(
        lambda repeat: store.settle(QUEUE, [complete(held)], claim_request(3, token="u", repeat=repeat))
    )

    assert [answer.verdict for answer in settled.answers] == ["done"]
    assert settled.claimed is not None
    assert len(settled.claimed.jobs) == 3
    await add(store, new_job("after"))


async def test_no_add_is_lost_to_a_primary_that_was_stopped_and_replaced_and_goes_on(watched: Watched):
    async with Queue("letters", watched.url) as queue:
        await queue.add("send")
        await watched.replicated()
        os.kill(watched.primary.pid, signal.SIGSTOP)
        jobs = await asyncio.gather(*(queue.add("send") for _ in range(20)))
        os.kill(watched.primary.pid, signal.SIGCONT)
        jobs += [await queue.add("send") for _ in range(300)]

        async with in_the(watched.replica) as store:
            found = [await store.get("letters", [job.id]) for job in jobs]
        assert [None] not in found


async def test_a_process_that_stood_still_too_asks_who_is_the_primary_before_it_adds(
    watched: Watched, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("ropeway.stores.redis.primary.LEASE", 0.1)
    store = open_store(watched.url)
    await add(store, new_job("before"))
    await watched.replicated()
    watched.replace_primary_while_this_process_stands_still()

    await insist(lambda _: add(store, new_job("after")))

    async with in_the(watched.replica) as there:
        assert (await read(there, "after")).state == "waiting"


async def test_an_answer_of_a_primary_that_was_replaced_meanwhile_counts_as_none(
    watched: Watched, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("ropeway.stores.redis.primary.LEASE", 0.1)
    store = open_store(watched.url)
    await add(store, new_job("before"))
    await watched.replicated()
    os.kill(watched.primary.pid, signal.SIGSTOP)
    adding = asyncio.create_task(insist(lambda _: store.add([[new_job("after")]])))
    await until(lambda: _link(store)._pending)
    watched.replace_primary_while_this_process_stands_still()
    # Now the answer is there.
    _stand_still_until(lambda: watched.primary.ask("HLEN", f"{{ropeway:{QUEUE}}}:jobs") == b":2\r\n")
    await adding

    async with in_the(watched.replica) as there:
        assert (await read(there, "after")).state == "waiting"


def _link(store: RedisStore) -> Link:
    connection = store._executor.resources.here().commands
    assert isinstance(connection, PrimaryConnection)
    assert connection._link is not None
    return connection._link


async def test_a_primary_that_has_lost_its_replicas_to_another_is_left(
    start_watched: StartWatched, open_store: OpenStore
):
    watched = start_watched("--min-replicas-to-write", "1")
    await until(lambda: b"min_slaves_good_slaves:1" in watched.primary.ask("INFO", "replication"))
    store = open_store(watched.url)
    await add(store, new_job("before"))
    await watched.replicated()
    watched.replace_primary_while_this_process_stands_still()
    _stand_still_until(lambda: b"min_slaves_good_slaves:0" in watched.primary.ask("INFO", "replication"))

    await insist(lambda _: add(store, new_job("after")))

    async with in_the(watched.replica) as there:
        assert (await read(there, "after")).state == "waiting"


@pytest.mark.parametrize(
    ("name", "value"),
    [("primary.LOOK_EVERY", 1_000.0), ("sentinel.CHANNELS", ("nothing is said here",))],
    ids=["told by a sentinel", "asks by itself"],
)
async def test_links_that_nobody_uses_end_when_the_primary_is_replaced(
    watched: Watched, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch, name: str, value: object
):
    monkeypatch.setattr(f"ropeway.stores.redis.{name}", value)
    store = open_store(watched.url)
    await add(store, new_job("before"))
    listener = store.listen("jobs", [QUEUE])
    await calm(listener)
    await watched.replicated()
    os.kill(watched.primary.pid, signal.SIGSTOP)
    async with asyncio.timeout(PATIENCE):
        await noticed(store)
    os.kill(watched.primary.pid, signal.SIGCONT)

    async with in_the(watched.replica) as there:
        await add(there, new_job("after"))
    assert await hears(listener)
    assert (await read(store, "after")).state == "waiting"
    listener.close()


async def test_work_goes_on_while_no_sentinel_answers(watched: Watched, open_store: OpenStore):
    store = open_store(watched.url)
    await add(store, new_job("a"))
    watched.sentinel.kill()
    await add(store, new_job("b"))
    connection = store._executor.resources.here().commands
    assert isinstance(connection, PrimaryConnection)
    await connection._sentinels.look()
    await add(store, new_job("c"))

    with pytest.raises(NotConnected, match="cannot be reached"):
        await open_store(watched.url).open()


async def test_the_newest_word_of_the_sentinels_counts():
    sentinels = Sentinels(Target.from_url("redis+sentinel://one,two/main"))
    cut_off, other_name, newest = View(1, "old", 1), View(2, "alias", 2), View(2, "new", 2)
    assert sentinels._newest([cut_off, newest]) == newest
    sentinels._turn_to(newest)
    assert sentinels._newest([other_name, cut_off, newest]) == newest
    assert sentinels._newest([other_name, cut_off]) == other_name


async def test_an_unknown_service_is_named(start_server: StartServer, open_store: OpenStore, tmp_path: Path):
    sentinel = SentinelProcess(tmp_path, start_server(port=free_port()))
    sentinel.start()
    try:
        with pytest.raises(StoreRefused, match="no service 'other'"):
            await open_store(f"redis+sentinel://127.0.0.1:{sentinel.port}/other/0").open()
    finally:
        sentinel.kill()
