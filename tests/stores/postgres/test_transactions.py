"""Other people's transactions: they hold up nobody, and what they add appears when they commit."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from typing import Final, NoReturn

import psycopg
import pytest

from ropeway import Queue
from ropeway.client.sync_queue import SyncQueue
from ropeway.stores.postgres import PostgresStore, scan_starts, transactions
from ropeway.stores.postgres.adding import Arguments, arguments_of
from ropeway.stores.postgres.scan_starts import MANY
from ropeway.stores.postgres.statements import function
from ropeway.testing.arrange import add, claim
from ropeway.testing.factories import NOW, QUEUE, complete, new_job, new_jobs
from tests.client import programs
from tests.patience import PATIENCE

from .conftest import Execute


def add_within(connection: psycopg.Connection, store: PostgresStore, id: str) -> None:
    places = ", ".join(["%s"] * len(Arguments._fields))
    sql = f"SELECT * FROM {function('add', store._target.schema)}({places})"
    connection.execute(sql.encode(), arguments_of([[new_job(id)]]))


async def test_an_open_transaction_that_added_a_job_holds_up_nobody(store: PostgresStore):
    await add(store, new_job("before"))
    with psycopg.connect(store._target.conninfo) as other:
        add_within(other, store, "within")

        await add(store, new_job("beside"))
        held = await claim(store, 10)
        await store.settle(QUEUE, [complete(job) for job in held], now=NOW)
        assert [job.id for job in held] == ["before", "beside"]
        assert (await store.count(QUEUE))["waiting"] == 0
        other.commit()

    assert (await store.count(QUEUE))["waiting"] == 1
    assert [job.id for job in await claim(store, 10)] == ["within"]


async def test_a_transaction_that_is_rolled_back_leaves_nothing(store: PostgresStore):
    await store.open()
    with psycopg.connect(store._target.conninfo) as other:
        add_within(other, store, "within")
        other.rollback()

    assert await store.get(QUEUE, ["within"]) == [None]
    assert (await store.events(QUEUE)).entries == []


async def test_a_reader_who_is_ahead_hears_of_what_was_committed_late(store: PostgresStore):
    await add(store, new_job("before"))
    with psycopg.connect(store._target.conninfo) as other:
        add_within(other, store, "within")
        await add(store, new_job("beside"))
        cursor = (await store.events(QUEUE, "now")).cursor
        other.commit()

    page = await store.events(QUEUE, cursor)

    assert [[id for id, _ in stored.entry.jobs] for stored in page.entries] == [["within"]]
    assert not page.gap


async def test_a_claim_does_not_pass_dead_jobs_again_and_again(store: PostgresStore, execute: Execute):
    await add(store, new_job("first"))
    with psycopg.connect(store._target.conninfo) as other:
        other.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        other.execute("SELECT 1")
        for _ in range(2):
            await store.add([new_jobs(MANY)])
            while held := await claim(store, 1_000):
                await store.settle(QUEUE, [complete(job) for job in held])

        await claim(store, 1)

        start = store._executor.scan_starts._starts[QUEUE, None]
        assert start.is_needed
        await add(store, new_job("last"))
        assert [job.id for job in await claim(store, 1)] == ["last"]


async def test_whoever_takes_other_names_begins_where_he_was(store: PostgresStore, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(scan_starts, "MANY", -1)
    await add(store, new_job("first", name="read"), new_job("second", name="send"), new_job("third", name="send"))

    assert [job.id for job in await claim(store, 2, names=("send",))] == ["second", "third"]
    assert [job.id for job in await claim(store, 2, names=("read",))] == ["first"]


NAME: Final = f"struck-{os.getpid()}"
OPEN: Final = f"""
SELECT count(*) FROM pg_stat_activity
WHERE application_name = '{NAME}' AND xact_start IS NOT NULL AND pid <> pg_backend_pid()
"""


class TestSignals:
    """Whose handlers raise, in transactions that are waited for."""

    @pytest.fixture
    def url(self, url: str) -> str:
        """Of a store whose connections can be told from those of others."""
        return f"{url}&application_name={NAME}"

    @pytest.fixture
    def queue(self, url: str) -> Iterator[SyncQueue]:
        with Queue("letters", url).sync as queue:
            yield queue

    def test_one_right_behind_the_begin_leaves_none_open(
        self, queue: SyncQueue, execute: Execute, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr(transactions, "BlockingPsycopg", struck)
        with pytest.raises(KeyboardInterrupt) as error, queue.transaction():
            pass
        # While somebody still has the error, and with it all that its traceback holds.
        assert error.tb is not None
        wait_until_none_is_open(execute)

    def test_one_in_the_rollback_leaves_none_open(
        self, queue: SyncQueue, execute: Execute, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr(psycopg.Transaction, "_rollback_gen", struck)
        with pytest.raises(KeyboardInterrupt) as error, queue.transaction():
            raise TimeoutError
        assert error.tb is not None
        wait_until_none_is_open(execute)

    def test_a_timeout_of_the_caller_s_own_is_not_taken_for_the_server_s(
        self, queue: SyncQueue, monkeypatch: pytest.MonkeyPatch
    ):
        def strike(*_: object) -> None:
            raise TimeoutError("mine")

        monkeypatch.setattr(psycopg.Connection, "transaction", strike)
        with pytest.raises(TimeoutError, match="mine"), queue.transaction():
            pass

    @pytest.mark.parametrize("strikes", [1, 2])
    def test_at_any_moment_they_leave_none_open(self, url: str, execute: Execute, strikes: int):
        script = f"""
        import gc
        from tests.storming import Storm
        # What strikes in a callback of the garbage collector's, Python only prints.
        sys.unraisablehook = lambda _: None
        def act():
            with queue.sync.transaction() as tx:
                queue.sync.add("send", tx=tx)
                tx.execute("SELECT 1")
                queue.sync.add("send", tx=tx)
        act()
        gc.disable()
        Storm(KeyboardInterrupt, every=0.001 * {strikes}, strikes={strikes}).interrupt(500, act)
        act()
        say(queue.sync.counts()["waiting"])
        input()
        """
        with programs.start(script, url, stdin=subprocess.PIPE) as program:
            assert program.stdout is not None
            waiting = int(program.stdout.readline())
            wait_until_none_is_open(execute)
            program.communicate("\n")
        assert waiting >= 4
        assert waiting % 2 == 0


def struck(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def wait_until_none_is_open(execute: Execute) -> None:
    """The server may hear only now that a connection was closed."""
    until = time.monotonic() + PATIENCE
    while execute(OPEN) != [(0,)]:
        assert time.monotonic() < until, "a transaction is still open"
