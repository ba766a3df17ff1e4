"""Disks that are locked, full, broken, or without power."""

# ruff: noqa: ASYNC240 - a test may wait for its own files

from __future__ import annotations

import asyncio
import random
import struct
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path

import apsw
import pytest

from ropeway.errors import StoreBusy, StoreCorrupt, StoreFull, StoreUnavailable
from ropeway.store.commands import Find
from ropeway.stores.sqlite import SQLiteStore, inbox, opening, shared, wal, writer
from ropeway.stores.sqlite.verbs import Read, Write
from ropeway.testing.factories import QUEUE, claim_request, complete, new_job, new_jobs

from .conftest import NewStore
from .disks import BadDisk, Disk, RememberingDisk, after_power_loss

_numbers = count()


@pytest.fixture
async def disk(path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[BadDisk]:
    disk = BadDisk(f"bad-{next(_numbers)}")
    monkeypatch.setattr(wal, "sync_file", disk.sync(wal.sync_file, f"{path.name}-wal"))
    yield disk
    disk.broken.clear()


@pytest.fixture
async def on_disk(disk: BadDisk, new_store: NewStore) -> AsyncIterator[SQLiteStore]:
    store = new_store(vfs=disk.name)
    await store.add([[new_job("first")]])
    yield store
    disk.broken.clear()
    # Before the disk goes away.
    await store.close()


async def test_another_writer_is_waited_for(store: SQLiteStore, path: Path):
    other = apsw.Connection(str(path))
    other.execute("BEGIN IMMEDIATE")
    adding = asyncio.create_task(store.add([[new_job()]]))
    await asyncio.sleep(0)

    assert not adding.done()
    other.execute("COMMIT")
    other.close()
    await adding


async def test_a_writer_that_never_ends_is_not_waited_for_for_ever(path: Path, new_store: NewStore):
    store = new_store(patience=0.05)
    await store.open()
    other = apsw.Connection(str(path))
    other.execute("BEGIN IMMEDIATE")

    with pytest.raises(StoreBusy, match="repeat"):
        await store.add([[new_job()]])
    assert (await store.count(QUEUE))["waiting"] == 0, "questions are answered meanwhile"
    other.execute("ROLLBACK")
    other.close()
    await store.add([[new_job()]])


async def test_a_full_disk_is_said_and_work_goes_on_when_there_is_space(on_disk: SQLiteStore, disk: BadDisk):
    [job] = (await on_disk.claim(claim_request())).jobs
    disk.broken["write"] = apsw.FullError

    with pytest.raises(StoreFull, match="free some space"):
        await on_disk.add([new_jobs(10)])
    disk.broken.clear()
    settled = await on_disk.settle(QUEUE, [complete(job)])

    assert settled.answers[0].verdict == "done"
    await on_disk.add([new_jobs(10)])
    assert (await on_disk.count(QUEUE))["waiting"] == 10


async def test_a_file_that_may_not_grow_is_a_full_disk(store: SQLiteStore):
    await store._write(Write(lambda tx: tx.get("PRAGMA max_page_count = 60")))

    with pytest.raises(StoreFull):
        await store.add([new_jobs(1_000, data='"' + "x" * 1_000 + '"')])
    await store._write(Write(lambda tx: tx.get("PRAGMA max_page_count = 4294967294")))
    await store.add([new_jobs(1_000, data='"' + "x" * 1_000 + '"')])


@pytest.mark.parametrize("action", ["sync", "write"])
async def test_a_failing_disk_never_answers_success(action: str, on_disk: SQLiteStore, disk: BadDisk):
    disk.broken[action] = apsw.IOError

    with pytest.raises(StoreUnavailable):
        await on_disk.add([[new_job("second")]])
    with pytest.raises(StoreUnavailable):
        await on_disk.add([[new_job("second")]])
    disk.broken.clear()

    [[again]] = await on_disk.add([[new_job("second")]])
    assert again.verdict in {"created", "found"}
    assert (await on_disk.get(QUEUE, ["first"]))[0] is not None


async def test_after_a_failed_sync_nothing_is_acknowledged_until_the_file_itself_is_synced(
    on_disk: SQLiteStore, disk: BadDisk, monkeypatch: pytest.MonkeyPatch
):
    """The system forgets pages that it could not write: a later sync of the -wal would succeed without them."""
    disk.broken["sync"] = apsw.IOError
    with pytest.raises(StoreUnavailable, match="unknown"):
        await on_disk.add([[new_job("second")]])
    disk.broken.clear()
    synced: list[str] = []
    before = type(disk).before

    def note(self: BadDisk, action: str, file: str, *details: object) -> None:
        before(self, action, file, *details)
        if action == "sync":
            synced.append(file)

    monkeypatch.setattr(BadDisk, "before", note)
    await on_disk.add([[new_job("third")]])

    assert synced.index("ropeway.db") < len(synced) - 1 - synced[::-1].index("ropeway.db-wal")
    assert (await on_disk.get(QUEUE, ["third"]))[0] is not None


async def test_a_connection_that_saw_an_error_is_not_used_again(on_disk: SQLiteStore, disk: BadDisk):
    shared = on_disk._file
    assert shared is not None
    assert shared._writer is not None
    before = shared._writer._connection
    disk.broken["sync"] = apsw.IOError
    with pytest.raises(StoreUnavailable):
        await on_disk.add([[new_job()]])
    disk.broken.clear()
    await on_disk.add([[new_job()]])

    assert shared._writer._connection is not before


async def test_a_failing_checkpoint_loses_nothing(
    on_disk: SQLiteStore, disk: BadDisk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(writer, "CHECKPOINT_AT", 1)
    fails = {"ropeway.db"}
    before = type(disk).before

    def only_the_file(self: BadDisk, action: str, file: str, *details: object) -> None:
        if action == "sync" and file in fails:
            raise apsw.IOError("sync of the file fails")
        before(self, action, file, *details)

    monkeypatch.setattr(BadDisk, "before", only_the_file)
    await on_disk.add([[new_job("second")]])
    # The -wal is written back after the answer; the next call is done after that.
    await on_disk.renew(QUEUE, [], 1)
    fails.clear()
    await on_disk.add([[new_job("third")]])

    assert None not in await on_disk.get(QUEUE, ["first", "second", "third"])
    assert "could not be written back" in caplog.text


async def test_damage_found_while_running_stops_all_writing(
    on_disk: SQLiteStore, disk: BadDisk, path: Path, monkeypatch: pytest.MonkeyPatch
):
    def find_damage(action: str, *_: object) -> None:
        if action == "write":
            monkeypatch.undo()
            raise apsw.CorruptError("once")

    await on_disk.add([[new_job()]])
    before = path.read_bytes()
    monkeypatch.setattr(disk, "before", find_damage)

    for _ in range(2):
        with pytest.raises(StoreCorrupt, match="recover"):
            await on_disk.add([[new_job()]])
    await on_disk.close()

    assert path.read_bytes() == before
    assert Path(f"{path}-wal").stat().st_size > 0


async def test_so_does_damage_that_was_found_by_reading(store: SQLiteStore):
    def find_damage(_: object) -> None:
        raise apsw.CorruptError("once")

    with pytest.raises(StoreCorrupt, match="recover"):
        await store._read(Read(find_damage))

    with pytest.raises(StoreCorrupt, match="recover"):
        await store.add([[new_job()]])


async def _work_through(store: SQLiteStore, disk: RememberingDisk, *, by_inbox: bool) -> None:
    """Adds and settles jobs, and notes in the disk's log what was acknowledged."""
    for number in range(60):
        data = f'"{"x" * (number * 37 % 3_000)}"'
        await store.add([[new_job(f"job-{number:03}", data=data, is_fresh=by_inbox)]])
        disk.log.append(("added", f"job-{number:03}"))
        if number % 7 == 6:
            [job] = (await store.claim(claim_request())).jobs
            await store.settle(QUEUE, [complete(job, '"done"')])
            disk.log.append(("completed", job.id))


def _remember_inbox(disk: RememberingDisk, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its writes, marks and syncs do not go through SQLite."""
    write, free, sync = inbox._write_all, inbox.Inbox.free, inbox.Inbox.sync

    def remember_write(file: int, data: bytes, offset: int) -> None:
        disk.log.append(("write", name, offset, data))
        write(file, data, offset)

    def remember_free(self: inbox.Inbox, ingested: int) -> None:
        free(self, ingested)
        disk.log.append(("write", name, inbox._FREED, struct.pack("<Q", self.freed)))

    def remember_sync(self: inbox.Inbox) -> None:
        disk.log.append(("sync", name))
        sync(self)

    monkeypatch.setattr(shared, "has_inbox", lambda *_: True)
    monkeypatch.setattr(inbox, "CAPACITY", 4 * inbox.MOST_AT_ONCE)
    monkeypatch.setattr(inbox, "_SIZE", inbox._HEAD + inbox.CAPACITY)
    monkeypatch.setattr(inbox, "_write_all", remember_write)
    monkeypatch.setattr(inbox.Inbox, "free", remember_free)
    monkeypatch.setattr(inbox.Inbox, "sync", remember_sync)


@pytest.mark.parametrize("durability", ["full", "fast", "inbox"])
async def test_a_power_cut_takes_nothing_that_was_acknowledged(
    durability: str, path: Path, tmp_path: Path, new_store: NewStore, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(writer, "CHECKPOINT_AT", 50)
    opening.open_file(str(path)).close()
    start = {path.name: path.read_bytes()}
    disk = RememberingDisk(f"remembering-{durability}")
    monkeypatch.setattr(wal, "sync_file", disk.sync(wal.sync_file, f"{path.name}-wal"))
    if durability == "inbox":
        _remember_inbox(disk, f"{path.name}-inbox", monkeypatch)
    store = new_store(vfs=disk.name, is_durable=durability != "fast")
    await _work_through(store, disk, by_inbox=durability == "inbox")
    log = list(disk.log)
    await store.close()
    assert sum(entry[:2] == ("sync", path.name) for entry in log) > (0 if durability == "inbox" else 3)
    assert any(entry[:2] == ("sync", f"{path.name}-inbox") for entry in log) == (durability == "inbox")

    luck = random.Random(20_261_115)
    for number in range(60):
        said = log[: luck.randrange(len(log) + 1)]
        acknowledged = [(entry[0], entry[1]) for entry in said if entry[0] in {"added", "completed"}]
        folder = tmp_path / f"cut-{number}"
        folder.mkdir()
        told = [entry for entry in said if entry[0] in {"write", "sync", "truncate"}]
        for name, contents in after_power_loss(start, told, luck).items():
            (folder / name).write_bytes(contents)
        await _check_after_the_cut(folder / path.name, acknowledged, is_durable=durability != "fast")


async def _check_after_the_cut(path: Path, acknowledged: list[tuple[str, str]], *, is_durable: bool) -> None:
    connection = opening.open_file(str(path))
    problems = connection.pragma("integrity_check")
    connection.close()
    assert problems == "ok"
    store = SQLiteStore.from_url(f"sqlite:///{path}")
    try:
        page = await store.find(Find(QUEUE, ("waiting", "active", "completed"), limit=1_000))
        states = {job.id: job.state for job in page.jobs}
        counts = await store.count(QUEUE)
    finally:
        await store.close()
    assert sum(counts.values()) == len(states)
    assert sorted(states) == [f"job-{number:03}" for number in range(len(states))], "they are a prefix"
    if is_durable:
        assert {id for what, id in acknowledged if what == "added"} <= states.keys()
        assert all(states[id] == "completed" for what, id in acknowledged if what == "completed")


def test_disks_are_forgotten():
    """Left-over names would be found by later tests."""
    disk = Disk("short-lived")
    disk.unregister()

    assert "short-lived" not in apsw.vfs_names()
