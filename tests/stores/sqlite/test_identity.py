"""A file that is no longer the one that was opened is not written to."""

# ruff: noqa: ASYNC240 - a test may wait for its own files

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from ropeway.errors import StoreRefused
from ropeway.store.values import StallRules
from ropeway.stores.sqlite import SQLiteStore, identity
from ropeway.stores.sqlite.identity import Watch
from ropeway.testing.factories import QUEUE, new_job

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


async def test_who_joins_without_the_shm_of_the_others_overwrites_nothing(running: SQLiteStore, path: Path):
    Path(f"{path}-shm").unlink()
    await refuses_for_good(running)

    await asyncio.to_thread(processes.run, ADD, path)
    await running.close()

    assert await asyncio.to_thread(processes.run, CHECK, path) == "101\nok\n"


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


def test_a_wal_that_grows_too_large_is_warned_about_once_a_minute(path: Path, caplog: pytest.LogCaptureFixture):
    now = 100.0
    path.write_text("")
    watch = Watch(str(path), steady=lambda: now)
    Path(f"{path}-wal").write_text("")
    os.truncate(f"{path}-wal", identity.WAL_ALARM + 1)

    for _ in range(119):
        watch.look()
        now += 1

    assert len([record for record in caplog.records if "has grown to 64 MB" in record.getMessage()]) == 2
