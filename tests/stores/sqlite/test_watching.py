"""A file that is no longer the one that was opened is not written to."""

# ruff: noqa: ASYNC240 - a test may wait for its own files

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

from ropeway import Queue
from ropeway.errors import StoreCorrupt, StoreRefused
from ropeway.store.values import StallRules
from ropeway.stores.sqlite import SQLiteStore, wal_frames, watching
from ropeway.stores.sqlite.watching import Watch
from ropeway.testing.factories import QUEUE, new_job, new_jobs

from . import processes

ADD = """
async def main():
    store = new_store()
    for number in range(100):
        await store.add([[new_job(f"other-{number}")]])
    await store.close()
asyncio.run(main())
"""
CHECK = """
import apsw
async def main():
    store = new_store()
    say((await store.count(QUEUE))["waiting"])
    await store.close()
asyncio.run(main())
say(apsw.Connection(path).execute("PRAGMA integrity_check").get)
"""


@pytest.fixture
async def running(store: SQLiteStore) -> SQLiteStore:
    await store.add([[new_job()]])
    await store.tick(QUEUE, StallRules())
    return store


async def refuses_for_good(store: SQLiteStore) -> None:
    with pytest.raises(StoreRefused, match="nothing more is written"):
        await store.tick(QUEUE, StallRules())
    with pytest.raises(StoreRefused):
        await store.add([[new_job()]])


async def test_a_moved_file_is_not_written_to(running: SQLiteStore, path: Path):
    path.rename(path.with_suffix(".old"))

    await refuses_for_good(running)


async def test_a_deleted_file_is_not_made_anew(running: SQLiteStore, path: Path):
    path.unlink()

    await refuses_for_good(running)
    assert not path.exists()


async def test_a_replaced_file_is_not_written_to(running: SQLiteStore, path: Path):
    shutil.copy(path, path.with_suffix(".copy"))
    path.with_suffix(".copy").replace(path)

    await refuses_for_good(running)


@pytest.mark.parametrize("beside", ["-wal", "-shm"])
async def test_a_deleted_file_beside_it_stops_the_store(running: SQLiteStore, path: Path, beside: str):
    Path(f"{path}{beside}").unlink()

    await refuses_for_good(running)


@pytest.mark.parametrize("beside", ["-wal", "-shm"])
async def test_it_stops_the_store_after_transactions_too(running: SQLiteStore, path: Path, beside: str):
    async with Queue(QUEUE, store=running).transaction() as tx:
        await tx.execute("CREATE TABLE note (text)")
    Path(f"{path}{beside}").unlink()

    await refuses_for_good(running)


CHECKPOINT = """
import apsw
apsw.Connection(path).pragma("wal_checkpoint")
"""
CONTENTS = """
from hashlib import sha256
from pathlib import Path
for suffix in ("", "-wal", "-inbox"):
    say(sha256(Path(path + suffix).read_bytes()).hexdigest())
"""
VACUUM = """
import apsw
connection = apsw.Connection(path)
connection.execute("VACUUM")
connection.pragma("wal_checkpoint")
"""


@pytest.fixture
async def filled(running: SQLiteStore, path: Path) -> SQLiteStore:
    """Its file has many pages."""
    await running.add([new_jobs(500, data=f'"{"x" * 1_000}"')])
    await asyncio.to_thread(processes.run, CHECKPOINT, path)
    await running.tick(QUEUE, StallRules())
    return running


@pytest.mark.parametrize("left", [0, 50, 4096, 100_000])
async def test_a_truncated_file_is_not_written_to_and_nothing_is_acknowledged(
    filled: SQLiteStore, path: Path, left: int
):
    await filled.add([[new_job(is_fresh=True)]])
    os.truncate(path, left)
    before = await asyncio.to_thread(processes.run, CONTENTS, path)

    with pytest.raises(StoreCorrupt, match="truncated while it was open"):
        await filled.add([[new_job(is_fresh=True)]])
    with pytest.raises(StoreCorrupt):
        await filled.tick(QUEUE, StallRules())
    with pytest.raises(StoreCorrupt):
        await filled.count(QUEUE)
    await filled.close()

    assert await asyncio.to_thread(processes.run, CONTENTS, path) == before


@pytest.mark.parametrize("left", [0, 100_000])
async def test_closing_writes_nothing_to_a_file_that_was_truncated(filled: SQLiteStore, path: Path, left: int):
    await filled.add([[new_job(is_fresh=True)]])
    os.truncate(path, left)
    before = await asyncio.to_thread(processes.run, CONTENTS, path)

    await filled.close()

    assert await asyncio.to_thread(processes.run, CONTENTS, path) == before


@pytest.mark.parametrize("left", [0, 32, 5_000, 50_000])
async def test_a_truncated_wal_is_not_written_to_and_nothing_is_acknowledged(
    running: SQLiteStore, path: Path, left: int
):
    await running.add([new_jobs(500)])
    await running.tick(QUEUE, StallRules())
    os.truncate(f"{path}-wal", left)
    before = await asyncio.to_thread(processes.run, CONTENTS, path)

    with pytest.raises(StoreCorrupt, match=r"-wal file, .* was truncated while it was open"):
        await running.tick(QUEUE, StallRules())
    with pytest.raises(StoreCorrupt):
        await running.add([[new_job("a")]])
    with pytest.raises(StoreCorrupt):
        await running.count(QUEUE)
    await running.close()

    assert await asyncio.to_thread(processes.run, CONTENTS, path) == before


@pytest.mark.parametrize("left", [0, 5_000])
async def test_closing_writes_nothing_if_the_wal_was_truncated(running: SQLiteStore, path: Path, left: int):
    await running.add([new_jobs(500)])
    await running.tick(QUEUE, StallRules())
    os.truncate(f"{path}-wal", left)
    before = await asyncio.to_thread(processes.run, CONTENTS, path)

    await running.close()

    assert await asyncio.to_thread(processes.run, CONTENTS, path) == before


EMPTY_WAL = """
import apsw
connection = apsw.Connection(path)
connection.set_busy_timeout(10_000)
connection.pragma("journal_size_limit", 0)
emptied = 0
while emptied < 300:
    busy, frames, done = next(connection.execute("PRAGMA wal_checkpoint(TRUNCATE)"))
    emptied += not busy
connection.close()
"""


async def test_a_wal_that_sqlite_itself_empties_is_used_on(running: SQLiteStore, path: Path):
    """By another process, while this one writes and reads."""
    emptying = asyncio.create_task(asyncio.to_thread(processes.run, EMPTY_WAL, path))
    added = 1
    while not emptying.done():
        await running.add([[new_job(f"job-{added}")]])
        added += 1
        await running.tick(QUEUE, StallRules())
    await emptying
    assert (await running.count(QUEUE))["waiting"] == added


IN_USE = """
import fcntl, os
file = os.open(path + "-shm", os.O_RDWR)
try:
    # The byte by which SQLite marks the -shm as in use.
    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 128)
    say("free")
except OSError:
    say("in use")
"""


async def test_a_handle_that_is_closed_leaves_the_locks_of_one_opened_meanwhile(path: Path):
    first, second = (SQLiteStore.from_url(f"sqlite:///{path}") for _ in range(2))
    await first.add([[new_job("a")]])
    closing = asyncio.create_task(first.close())
    await second.add([[new_job("b")]])
    await closing
    await second.add([[new_job("c")]])
    assert await asyncio.to_thread(processes.run, IN_USE, path) == "in use\n"
    await second.close()


async def test_looking_at_the_wal_keeps_few_files_open(path: Path):
    """Although a descriptor of the -shm is only closed when that file is gone."""
    for number in range(20):
        store = SQLiteStore.from_url(f"sqlite:///{path}")
        await store.add([[new_job(f"job-{number}")]])
        await store.close()
    gone = [file for file in wal_frames._shm_files.values() if not os.fstat(file).st_nlink]
    assert len(gone) <= 1


async def test_a_file_that_somebody_vacuumed_is_used_on(filled: SQLiteStore, path: Path):
    size = path.stat().st_size
    await filled.obliterate(QUEUE)
    await asyncio.to_thread(processes.run, VACUUM, path)
    assert path.stat().st_size < size

    await filled.add([[new_job("a")]])
    await filled.close()

    assert await asyncio.to_thread(processes.run, CHECK, path) == "1\nok\n"


@pytest.mark.parametrize("left", [0, 5_000])
async def test_a_truncated_inbox_stops_the_store(running: SQLiteStore, path: Path, left: int):
    await running.add([[new_job(is_fresh=True)]])
    os.truncate(f"{path}-inbox", left)

    with pytest.raises(StoreRefused, match="-inbox"):
        await running.add([[new_job(is_fresh=True)]])
    with pytest.raises(StoreRefused, match="-inbox"):
        await running.count(QUEUE)
    await running.close()

    assert Path(f"{path}-inbox").stat().st_size == left


async def test_who_joins_without_the_shm_of_the_others_overwrites_nothing(running: SQLiteStore, path: Path):
    Path(f"{path}-shm").unlink()
    await refuses_for_good(running)

    await asyncio.to_thread(processes.run, ADD, path)
    await running.close()

    assert await asyncio.to_thread(processes.run, CHECK, path) == "101\nok\n"


@pytest.fixture
def new_connection(path: Path) -> Iterator[Callable[[], apsw.Connection]]:
    made: list[apsw.Connection] = []

    def new() -> apsw.Connection:
        made.append(apsw.Connection(str(path)))
        made[-1].pragma("journal_mode", "wal")
        made[-1].execute("SELECT * FROM sqlite_schema")
        return made[-1]

    yield new
    for connection in made:
        connection.close()


def test_only_the_last_connection_may_take_the_files_beside_it_away(
    path: Path, new_connection: Callable[[], apsw.Connection]
):
    first, second = new_connection(), new_connection()
    watch = Watch(str(path))
    watch.opened(first)
    watch.opened(second)
    watch.close(second)
    watch.close(second)
    watch.look(thorough=True)

    watch.close(first)
    assert not Path(f"{path}-shm").exists()
    watch.look(thorough=True)

    watch.opened(new_connection())
    watch.look(thorough=True)
    Path(f"{path}-shm").unlink()
    with pytest.raises(StoreRefused, match="-shm"):
        watch.look(thorough=True)


def test_a_connection_that_a_signal_left_to_nobody_is_not_waited_for(path: Path):
    lost = apsw.Connection(str(path))
    lost.pragma("journal_mode", "wal")
    watch = Watch(str(path))
    watch.opened(lost)
    watch.look(thorough=True)

    del lost

    assert not Path(f"{path}-wal").exists()
    watch.look(thorough=True)


def test_files_are_looked_at_once_a_second(path: Path):
    now = 100.0
    path.write_text("")
    watch = Watch(str(path), steady=lambda: now)
    watch.look()
    path.unlink()

    now += 0.9
    watch.look()
    now += 0.1
    with pytest.raises(StoreRefused):
        watch.look()


def test_what_a_signal_raises_in_between_is_not_taken_for_a_lost_file(path: Path, monkeypatch: pytest.MonkeyPatch):
    def interrupt(_: str) -> None:
        raise TimeoutError("the user's own")

    path.write_text("")
    watch = Watch(str(path))
    with monkeypatch.context() as interrupted:
        interrupted.setattr(os, "stat", interrupt)
        with pytest.raises(TimeoutError, match="own"):
            watch.look(thorough=True)

    watch.look(thorough=True)


def test_a_wal_that_grows_too_large_is_warned_about_once_a_minute(
    path: Path, new_connection: Callable[[], apsw.Connection], caplog: pytest.LogCaptureFixture
):
    now = 100.0
    connection = new_connection()
    watch = Watch(str(path), steady=lambda: now)
    watch.opened(connection)
    os.truncate(f"{path}-wal", watching.WAL_ALARM + 1)

    for _ in range(119):
        watch.look()
        now += 1

    assert len([record for record in caplog.records if "has grown to 64 MB" in record.getMessage()]) == 2
