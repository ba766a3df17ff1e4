"""Wakes by NOTIFY: heard again after every trouble, and sent only to whom they help."""

from __future__ import annotations

import asyncio
import fcntl
import struct
import termios
from typing import Any

import psycopg
import pytest

from ropeway import Job, Queue, Worker
from ropeway.stores.postgres import PostgresStore
from ropeway.stores.postgres.connection import open_link
from ropeway.stores.postgres.target import Target
from ropeway.testing.conformance.listen import calm, hears
from ropeway.testing.factories import QUEUE, new_job
from tests.stores.databases import DatabaseProcess
from tests.stores.network import Proxy
from tests.stores.waiting import until
from tests.worker.watching import Gate

from .conftest import Execute, OpenStore

_LISTENERS = """
    SELECT 1 FROM pg_locks
    WHERE locktype = 'advisory' AND mode = 'ShareLock'
    AND classid = (hashtext('ropeway.jobs')::bigint & 4294967295)::oid
"""


@pytest.fixture
def store(open_store: OpenStore, proxy: Proxy) -> PostgresStore:
    return open_store(proxy.url(timeout="0.5"))


@pytest.fixture
def other(open_store: OpenStore, server: DatabaseProcess) -> PostgresStore:
    """One whose network is well."""
    return open_store(server.url())


async def test_a_listener_whose_connection_was_cut_is_heard_of_again(
    store: PostgresStore, other: PostgresStore, proxy: Proxy
):
    listener = store.listen("jobs", [QUEUE])
    await calm(listener)
    await proxy.stop()
    await other.add([[new_job()]])
    proxy.start()

    assert await hears(listener), "what it missed"
    await calm(listener)
    await other.add([[new_job()]])
    assert await hears(listener), "what came later"
    listener.close()


async def test_a_listener_whose_connection_is_dead_notices_it(
    store: PostgresStore, other: PostgresStore, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("ropeway.stores.postgres.wake_connection.WATCH", 0.1)
    listener = store.listen("jobs", [QUEUE])
    await calm(listener)
    proxy.fall_silent()
    await other.add([[new_job()]])
    proxy.heal()

    assert await hears(listener)
    listener.close()


async def test_where_listening_is_off_a_wait_ends_soon_anyway(open_store: OpenStore, server: DatabaseProcess):
    store = open_store(server.url(listen="off"))
    listener = store.listen("jobs", [QUEUE])

    assert await listener.wait()
    assert server.execute("SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'") == [(0,)]
    listener.close()


async def test_nobody_is_woken_while_all_workers_are_busy(server: DatabaseProcess):
    gate = Gate()
    async with Queue("letters", server.url()) as queue, Worker(queue, gate, concurrency=1):
        await queue.add("send")
        await gate.holds(1)
        # Until the last of its waits is over, and nobody is told any more.
        await until(lambda: not server.execute(_LISTENERS))
        with server.session() as session:
            session.execute('LISTEN "ropeway.wake"')
            for number in range(200):
                await queue.add("send", number)
            assert [told for told in _told(session) if told.startswith("jobs")] == []
        gate.opened.set()


async def test_an_idle_worker_is_woken_by_one_notification(server: DatabaseProcess):
    ran: list[int] = []

    async def handle(job: Job) -> None:
        ran.append(job.data)

    async with Queue("letters", server.url()) as queue, Worker(queue, handle):
        await until(lambda: server.execute(_LISTENERS))
        with server.session() as session:
            session.execute('LISTEN "ropeway.wake"')
            await queue.add("send", 1)
            await until(lambda: ran)
            assert len([told for told in _told(session) if told.startswith("jobs")]) == 1


def _told(session: psycopg.Connection[Any]) -> list[str]:
    """What it was notified of; the answer to a question comes after all of that."""
    session.execute("SELECT 1")
    return [notify.payload for notify in session.notifies(timeout=0)]


async def test_a_notification_that_comes_together_with_an_answer_is_heard_with_it(url: str, execute: Execute):
    link = await open_link(Target.from_url(url))
    heard: list[str] = []
    link.set_listener(heard.append)
    await link.run("LISTEN beside")

    loop = asyncio.get_running_loop()
    loop.remove_reader(link._fd)
    answer = link.run("SELECT 1")
    await until(lambda: unread(link._fd))
    size = unread(link._fd)
    execute("NOTIFY beside, 'hello'")
    await until(lambda: unread(link._fd) > size)
    loop.add_reader(link._fd, link._readable)

    assert await answer == [(1,)]
    assert heard == ["hello"]
    link.abort()


def unread(file: int) -> int:
    [size] = struct.unpack("i", fcntl.ioctl(file, termios.FIONREAD, bytes(4)))
    return int(size)
