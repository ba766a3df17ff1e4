"""Transactions that callers share, where a file's own rules come in. What all stores do: tests/client."""

# ruff: noqa: PT012 - what the end of a block raises is tested with its block

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import apsw
import pytest

from ropeway import InvalidInput, InvalidOption, Queue
from ropeway.errors import StoreBusy, StoreFull, StoreUnavailable
from ropeway.stores.sqlite import SQLiteStore
from ropeway.stores.sqlite.authorizer import own_tables

from . import processes
from .conftest import NewStore
from .disks import BadDisk


@pytest.fixture
async def queue(store: SQLiteStore) -> Queue:
    queue = Queue("letters", store=store)
    async with queue.transaction() as tx:
        await tx.execute("CREATE TABLE note (text)")
    return queue


async def notes(queue: Queue) -> list[Any]:
    async with queue.transaction() as tx:
        return [text for (text,) in await tx.execute("SELECT text FROM note")]


class TestStatements:
    async def test_parameters_are_given_by_place_or_by_name(self, queue: Queue):
        async with queue.transaction() as tx:
            assert await tx.execute("SELECT ?, ?", (1, "two")) == [(1, "two")]
            assert await tx.execute("SELECT :a", {"a": None}) == [(None,)]
            assert await tx.execute("INSERT INTO note VALUES (1) RETURNING text") == [(1,)]
            assert await tx.execute("DELETE FROM note") == []

    @pytest.mark.parametrize(
        "sql",
        [
            "COMMIT",
            "ROLLBACK",
            "SAVEPOINT mine",
            "DELETE FROM job",
            "INSERT INTO waiting SELECT * FROM waiting",
            "UPDATE queue SET is_paused = 1",
            "DROP TABLE record",
            "DROP VIEW whole_job",
            "CREATE TEMP TABLE Waiting (queue, priority, ord, name)",
            "CREATE TEMP VIEW Whole_Job AS SELECT 1",
            "ALTER TABLE job RENAME TO work",
            "CREATE INDEX mine ON job (name)",
            "CREATE TRIGGER mine AFTER INSERT ON job BEGIN SELECT 1; END",
            "PRAGMA user_version = 7",
            "ATTACH ':memory:' AS other",
        ],
    )
    async def test_what_is_ropeway_s_is_refused_and_the_rest_goes_on(self, queue: Queue, sql: str):
        async with queue.transaction() as tx:
            await queue.add("send", tx=tx)
            with pytest.raises(InvalidInput, match="not for a transaction that is shared"):
                await tx.execute(sql)
            await tx.execute("INSERT INTO note VALUES (1)")
        assert await notes(queue) == [1]
        assert (await queue.counts())["waiting"] == 1

    async def test_a_temporary_table_does_not_come_to_stand_before_one_of_ropeway_s(self, queue: Queue):
        async with queue.transaction() as tx:
            await tx.execute("CREATE TEMP TABLE mine (queue, priority, ord, name)")
            with pytest.raises(InvalidInput):
                await tx.execute("ALTER TABLE mine RENAME TO waiting")
            await tx.execute("INSERT INTO mine VALUES (1, 2, 3, 4)")
            job = await queue.add("send", tx=tx)
        assert [found.id for found in (await queue.find("waiting")).jobs] == [job.id]

    async def test_a_trigger_of_the_caller_s_must_keep_out_too(self, queue: Queue):
        async with queue.transaction() as tx:
            await tx.execute("CREATE TRIGGER mine AFTER INSERT ON note BEGIN DELETE FROM job; END")
            with pytest.raises(InvalidInput):
                await tx.execute("INSERT INTO note VALUES (1)")

    async def test_reading_is_allowed_everywhere(self, queue: Queue):
        async with queue.transaction() as tx:
            for table in own_tables():
                await tx.execute(f"SELECT count(*) FROM {table}")

    async def test_errors_of_sqlite_are_raised_as_they_are(self, queue: Queue):
        async with queue.transaction() as tx:
            with pytest.raises(apsw.SQLError):
                await tx.execute("SELECT nothing")
            await tx.execute("INSERT INTO note VALUES (1)")
        assert await notes(queue) == [1]


class TestTurns:
    async def test_a_call_that_would_wait_for_its_own_transaction_is_told(self, queue: Queue):
        async with queue.transaction() as tx:
            await tx.execute("INSERT INTO note VALUES (1)")
            with pytest.raises(InvalidInput, match="tx="):
                await queue.add("send")
            with pytest.raises(InvalidInput, match="tx="):
                await asyncio.to_thread(queue.sync.add, "send")
            with pytest.raises(InvalidInput, match="tx="):
                async with queue.transaction():
                    pass
            late = asyncio.create_task(add_when_told(queue, told := asyncio.Event()))
            await asyncio.sleep(0)
        told.set()
        await late
        await queue.add("send")
        assert (await queue.counts())["waiting"] == 2

    async def test_others_wait_for_its_end(self, queue: Queue, new_store: NewStore):
        other = Queue("letters", store=new_store())
        begun, go_on = asyncio.Event(), asyncio.Event()

        async def hold() -> None:
            async with queue.transaction() as tx:
                await tx.execute("INSERT INTO note VALUES (1)")
                begun.set()
                await go_on.wait()

        holding = asyncio.create_task(hold())
        await begun.wait()
        adding = asyncio.create_task(other.add("send", id="own"))
        assert (await other.counts())["waiting"] == 0
        assert not adding.done()
        go_on.set()
        await asyncio.gather(holding, adding)
        assert (await other.counts())["waiting"] == 1

    async def test_it_waits_for_others_as_long_as_its_store(self, new_store: NewStore, path: Path):
        queue = Queue("letters", store=new_store(patience=0.05))
        await queue.add("send")
        other = apsw.Connection(str(path))
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusy):
            async with queue.transaction():
                pass
        other.execute("ROLLBACK")
        other.close()
        async with queue.transaction() as tx:
            await queue.add("send", tx=tx)

    async def test_one_that_was_cancelled_while_it_waited_keeps_nothing(self, queue: Queue, path: Path):
        other = apsw.Connection(str(path))
        other.execute("BEGIN IMMEDIATE")
        waiting = asyncio.create_task(notes(queue))
        while not any("opens" in thread.name for thread in threading.enumerate()):  # noqa: ASYNC110 - a thread's name
            await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        other.execute("ROLLBACK")
        other.close()
        await queue.add("send")
        assert await notes(queue) == []

    async def test_a_statement_that_nobody_waits_for_any_more_is_interrupted(self, queue: Queue):
        endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n"
        running = asyncio.Event()

        async def run() -> None:
            async with queue.transaction() as tx:
                await tx.execute("INSERT INTO note VALUES (1)")
                running.set()
                await tx.execute(endless)

        task = asyncio.create_task(run())
        await running.wait()
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await notes(queue) == []


def is_in_doubt(store: SQLiteStore) -> bool:
    assert store._file is not None
    assert store._file._writer is not None
    return store._file._writer.is_in_doubt


async def add_when_told(queue: Queue, told: asyncio.Event) -> None:
    """Its context is that of the block, which has ended by then."""
    await told.wait()
    await queue.add("send")


class TestEnds:
    async def test_a_transaction_that_has_ended_is_refused(self, queue: Queue):
        async with queue.transaction() as tx:
            pass
        with pytest.raises(InvalidInput, match="has ended"):
            await tx.execute("SELECT 1")
        with pytest.raises(InvalidInput, match="has ended"):
            await queue.add("send", tx=tx)

    async def test_one_of_another_file_is_refused(self, queue: Queue, tmp_path: Path):
        async with Queue("letters", f"sqlite:///{tmp_path}/other.db") as other, other.transaction() as tx:
            with pytest.raises(InvalidOption, match=r"other\.db"):
                await queue.add("send", tx=tx)

    async def test_a_full_disk_leaves_nothing(self, new_store: NewStore):
        disk = BadDisk("full-for-a-transaction")
        store = new_store(vfs=disk.name)
        queue = Queue("letters", store=store)
        await queue.add("send")
        with pytest.raises(StoreFull):
            async with queue.transaction() as tx:
                await queue.add_many([("send", "x" * 10_000)] * 20, tx=tx)
                disk.broken["write"] = apsw.FullError
        disk.broken.clear()
        assert (await queue.counts())["waiting"] == 1
        async with queue.transaction() as tx:
            await queue.add("send", tx=tx)
        assert (await queue.counts())["waiting"] == 2
        await store.close()

    async def test_after_a_failed_sync_the_file_itself_is_synced_before_anything_else(self, new_store: NewStore):
        disk = BadDisk("no-sync-for-a-transaction")
        store = new_store(vfs=disk.name)
        queue = Queue("letters", store=store)
        await queue.add("send")
        with pytest.raises(StoreUnavailable):
            async with queue.transaction() as tx:
                await queue.add("send", tx=tx)
                disk.broken["sync"] = apsw.IOError
        disk.broken.clear()
        doubts = [is_in_doubt(store)]
        await queue.add("send")
        assert [*doubts, is_in_doubt(store)] == [True, False]
        assert (await queue.counts())["waiting"] == 2
        await store.close()

    def test_a_child_forked_in_the_middle_is_refused_and_the_parent_goes_on(self, path: Path):
        script = """
        from ropeway import Queue
        from ropeway.errors import StoreClosed, StoreRefused
        from ropeway.stores.sqlite import forking
        forking.PAUSE_LIMIT = 0.2
        queue = Queue("letters", "sqlite:///" + str(path)).sync
        queue.add("send")
        with queue.transaction() as tx:
            queue.add("send", tx=tx)
            if os.fork() == 0:
                try:
                    Queue("letters", "sqlite:///" + str(path)).sync.add("send")
                except (StoreClosed, StoreRefused) as error:
                    say(type(error).__name__)
                os._exit(0)
            os.wait()
        say(queue.counts()["waiting"])
        """
        assert processes.run(script, path).split() == ["StoreRefused", "2"]

    @pytest.mark.parametrize("strikes", [1, 2])
    @pytest.mark.parametrize("base", ["KeyboardInterrupt", "TimeoutError"])
    async def test_signals_at_any_moment_leave_none_open(self, queue: Queue, path: Path, base: str, strikes: int):
        script = f"""
        from ropeway import Queue
        from tests.storming import Storm
        # What strikes in a callback of the garbage collector's, Python only prints.
        sys.unraisablehook = lambda _: None
        queue = Queue("letters", "sqlite:///" + path)
        def act():
            with queue.sync.transaction() as tx:
                tx.execute("INSERT INTO note VALUES (1)")
                queue.sync.add("send", tx=tx)
        act()
        Storm({base}, every=0.0007 * {strikes}, strikes={strikes}).interrupt(500, act)
        act()
        say(len(queue.twin_store._file._lent))
        input()
        """
        with processes.start(script, path) as other:
            assert processes.line(other) == "0"
            assert len(await notes(queue)) == (await queue.counts())["waiting"] > 1
            processes.tell(other)
