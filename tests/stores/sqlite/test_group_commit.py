"""One transaction for all calls that wait, and none of them hurts another."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from ropeway.errors import StoreError
from ropeway.store.commands import Find
from ropeway.store.values import Record, StallRules
from ropeway.stores.sqlite import SQLiteStore, wal
from ropeway.stores.sqlite.transaction import Transaction
from ropeway.stores.sqlite.verbs import Write
from ropeway.testing.conformance.waiting_claims import begun, waiting_request
from ropeway.testing.factories import QUEUE, WORKER, claim_request, new_job, new_jobs

from .conftest import NewStore


class Syncs:
    """Counts how often the -wal is synced, and holds the next sync up."""

    def __init__(self, sync: Callable[[int], None]) -> None:
        self._sync = sync
        self.number = 0
        self.begun, self._may_end = threading.Event(), threading.Event()
        self._may_end.set()

    def __call__(self, file: int) -> None:
        self.number += 1
        self.begun.set()
        self._may_end.wait()
        self._sync(file)

    def hold(self) -> None:
        self.begun.clear()
        self._may_end.clear()

    def go_on(self) -> None:
        self._may_end.set()


@pytest.fixture
def syncs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Syncs]:
    syncs = Syncs(wal.sync_file)
    monkeypatch.setattr(wal, "sync_file", syncs)
    yield syncs
    syncs.go_on()


class Gate:
    """A call that keeps the writer busy until it is let through, so that others gather behind it."""

    def __init__(self, store: SQLiteStore) -> None:
        self._store = store
        self._inside, self._through = threading.Event(), threading.Event()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Gate:
        self._task = asyncio.create_task(self._store._write(Write(self._hold)))
        await asyncio.to_thread(self._inside.wait)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._through.set()
        assert self._task is not None
        await self._task

    def _hold(self, _: Transaction) -> None:
        self._inside.set()
        self._through.wait()


async def gathered(*tasks: asyncio.Task[Any]) -> None:
    """Returns when every task has put its call into the writer's queue."""
    for _ in tasks:
        await asyncio.sleep(0)


async def test_calls_that_wait_share_a_transaction(sql: list[str], store: SQLiteStore):
    async with Gate(store):
        adds = [asyncio.create_task(store.add([[new_job()]])) for _ in range(50)]
        await gathered(*adds)
        sql.clear()
    await asyncio.gather(*adds)

    assert sql.count("BEGIN IMMEDIATE") == 1
    assert sql.count("COMMIT") == 2, "the gate's and one more"
    assert (await store.count(QUEUE))["waiting"] == 50


def fails(tx: Transaction) -> None:
    tx.queue(QUEUE, create=True).move(None, "failed", 7)
    tx.run("INSERT INTO record VALUES ('half', 'done', '1', 1, NULL)")
    raise ZeroDivisionError


async def test_a_failing_call_does_not_hurt_the_ones_beside_it(store: SQLiteStore):
    async with Gate(store):
        before = asyncio.create_task(store.add([[new_job()]]))
        broken = asyncio.create_task(store._write(Write(fails)))
        after = asyncio.create_task(store.add([[new_job()]]))
        await gathered(before, broken, after)
    await before
    await after

    with pytest.raises(ZeroDivisionError):
        await broken
    counts = await store.count(QUEUE)
    assert (counts["waiting"], counts["failed"]) == (2, 0)
    assert await store.recall("half") == []
    assert len((await store.events(QUEUE)).entries) == 2


async def test_a_call_that_fails_alone_changes_nothing(store: SQLiteStore):
    with pytest.raises(ZeroDivisionError):
        await store._write(Write(fails))

    assert await store.recall("half") == []
    await store.add([[new_job()]])


async def test_a_commit_that_fails_fails_every_call_of_it(store: SQLiteStore, monkeypatch: pytest.MonkeyPatch):
    def flush(tx: Transaction) -> None:
        if tx.wakes:
            raise apsw.IOError("disk I/O error")

    async with Gate(store):
        adds = [asyncio.create_task(store.add([[new_job()]])) for _ in range(3)]
        await gathered(*adds)
        monkeypatch.setattr(Transaction, "flush", flush)
    answers = await asyncio.gather(*adds, return_exceptions=True)
    monkeypatch.undo()

    assert all(isinstance(answer, StoreError) for answer in answers)
    assert (await store.count(QUEUE))["waiting"] == 0
    await store.add([[new_job()]])


async def test_every_write_begins_immediate(sql: list[str], store: SQLiteStore):
    await store.add([[new_job("a"), new_job("b", delay=5)], new_jobs(3)])
    [job, *_] = (await store.claim(claim_request(5))).jobs
    await store.settle(QUEUE, [], claim_request(5))
    await store.renew(QUEUE, [], 1)
    await store.tick(QUEUE, StallRules())
    await store.cancel(QUEUE, [job.id])
    await store.retry(QUEUE, [job.id])
    await store.promote(QUEUE, ["b"])
    await store.remove(QUEUE, ["b"], force=True)
    await store.configure(QUEUE, pause=True)
    await store.clear_log(QUEUE, job.id)
    await store.publish(QUEUE, "imported", "{}")
    await store.trim_events(QUEUE)
    await store.clean(QUEUE, "waiting")
    await store.remember(Record("kind", "key", "1"))
    await store.forget("kind", "key")
    await store.obliterate(QUEUE, force=True)
    await store.find(Find(QUEUE, ("waiting", "active")))

    is_open = is_reading = False
    for statement in sql:
        if statement == "BEGIN IMMEDIATE":
            is_open = True
        elif statement == "BEGIN":
            is_reading = True
        elif statement == "COMMIT":
            is_open = is_reading = False
        elif re.match(r"(INSERT|UPDATE|DELETE|REPLACE|CREATE|ALTER|DROP)\b", statement):
            assert (is_open, is_reading) == (True, False), f"outside of BEGIN IMMEDIATE: {statement}"
    assert sql.count("BEGIN IMMEDIATE") >= 17


async def test_a_durable_handle_beside_a_fast_one_stays_durable(syncs: Syncs, new_store: NewStore):
    fast, full = new_store(is_durable=False), new_store()
    await fast.add([[new_job()]])
    assert syncs.number == 0
    await full.add([[new_job()]])
    assert syncs.number == 1
    await fast.add([[new_job()]])
    assert syncs.number == 1


async def test_what_waits_for_the_disk_keeps_nobody_else_waiting(syncs: Syncs, store: SQLiteStore, path: Path):
    await store.add([[new_job("first")]])
    syncs.hold()
    adding = asyncio.create_task(store.add([[new_job("second")]]))
    await asyncio.to_thread(syncs.begun.wait)

    other = apsw.Connection(str(path))
    other.execute("BEGIN IMMEDIATE")
    [[ids]] = other.execute("SELECT group_concat(id, ' ') FROM job")
    other.execute("ROLLBACK")
    other.close()

    assert ids == "first second"
    assert not adding.done(), "it is not acknowledged before it is on the disk"
    syncs.go_on()
    await adding


async def test_a_job_begins_before_its_add_is_on_the_disk(syncs: Syncs, store: SQLiteStore):
    listener = store.listen("jobs", [QUEUE], WORKER)
    await listener.wait(0)
    claiming = await begun(store, waiting_request())
    syncs.hold()
    adding = asyncio.create_task(store.add([[new_job("a")]]))

    claimed = await claiming

    assert [job.id for job in claimed.jobs] == ["a"]
    assert not adding.done()
    syncs.go_on()
    await adding
    listener.close()


async def test_what_is_known_of_a_queue_is_read_again_after_others_wrote(store: SQLiteStore, path: Path):
    await store.add([[new_job("a")]])
    other = apsw.Connection(str(path))
    other.execute("UPDATE queue SET is_paused = 1, is_configured = 1, waiting = 7")
    other.execute("UPDATE job SET seq = 41")
    other.close()

    await store.add([[new_job("b")]])

    assert (await store.settings(QUEUE)).paused
    assert (await store.count(QUEUE))["waiting"] == 8
    [[seq]] = apsw.Connection(str(path)).execute("SELECT seq FROM job WHERE id = 'b'")
    assert seq == 42


async def test_what_a_failed_round_did_is_not_known(store: SQLiteStore):
    await store.add([[new_job("a")]])

    def fail(tx: Transaction) -> None:
        tx.queue(QUEUE).move(None, "waiting", 5)
        raise apsw.FullError("no space")

    with pytest.raises(StoreError):
        await store._write(Write(fail))
    await store.add([[new_job("b")]])

    assert (await store.count(QUEUE))["waiting"] == 2


async def test_a_loop_that_was_closed_does_not_stop_the_writer(store: SQLiteStore, new_store: NewStore):
    sibling = new_store()
    await sibling.open()
    closed = asyncio.new_event_loop()

    async def begin() -> None:
        asyncio.create_task(sibling.add([[new_job()]])).add_done_callback(lambda _: None)
        await asyncio.sleep(0)

    async with Gate(store):

        def use_and_close() -> None:
            closed.run_until_complete(begin())
            for task in asyncio.all_tasks(closed):
                task.cancel()
                closed.run_until_complete(asyncio.gather(task, return_exceptions=True))
            closed.close()

        await asyncio.to_thread(use_and_close)

    await store.add([[new_job()]])
    assert (await store.count(QUEUE))["waiting"] in {1, 2}


async def test_handles_of_one_process_share_one_writer(store: SQLiteStore, new_store: NewStore, path: Path):
    sibling, other = store.sibling(), new_store()
    await sibling.add([[new_job()]])
    await other.add([[new_job()]])

    writers = [thread for thread in threading.enumerate() if thread.name == f"ropeway writer of {path}"]

    assert len(writers) == 1
    await sibling.close()
    await other.close()
    assert writers[0].is_alive()
    await store.close()
    assert not writers[0].is_alive()


async def test_a_cancelled_call_leaves_the_lane_in_order(store: SQLiteStore):
    async with Gate(store):
        call = asyncio.create_task(store.add([[new_job("cancelled")]]))
        await gathered(call)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    await store.add([[new_job("later")]])
    assert (await store.get(QUEUE, ["later"]))[0] is not None
