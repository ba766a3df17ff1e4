"""The inbox after power cuts, kills, forks and failures: what was acknowledged is found."""

# ruff: noqa: ASYNC240 - a test may wait for its own files, and damage what others do not see

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ropeway.errors import StoreCorrupt, StoreRefused, StoreUnavailable
from ropeway.store.commands import Find
from ropeway.stores.sqlite import SQLiteStore, inbox, ingest, opening, wal
from ropeway.stores.sqlite.inbox import Inbox, open_inbox
from ropeway.testing.conformance.forking import in_a_forked_child
from ropeway.testing.factories import QUEUE, claim_request, new_job

from . import processes
from .conftest import NewStore

KEY = b"0123456789abcdef"

ADD_AND_DIE = """
store = new_store()
store.add_blocking([[new_job("a", is_fresh=True)]])
say("added")
os.kill(os.getpid(), signal.SIGKILL)
"""

pytestmark = pytest.mark.usefixtures("never_by_itself")


def add_and_die(path: Path) -> None:
    with processes.start(ADD_AND_DIE, path) as adder:
        assert processes.line(adder) == "added"


async def waiting(store: SQLiteStore) -> set[str]:
    return {job.id for job in (await store.find(Find(QUEUE, ("waiting",), limit=100_000))).jobs}


def inbox_of(store: SQLiteStore) -> Inbox:
    assert store._file is not None
    assert store._file._writer is not None
    assert store._file._writer._inbox_handle is not None
    found = store._file._writer._inbox_handle._inbox
    assert found is not None
    return found


def set_mark(box: Inbox, freed: int) -> None:
    os.pwrite(box._file, inbox._mark.pack(freed), inbox._FREED)


def abandon(box: Inbox) -> None:
    box._map.close()
    os.close(box._file)


async def test_a_power_cut_that_takes_only_the_mark(
    path: Path, new_store: NewStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(ingest, "INGEST_AT", 1 << 60)
    monkeypatch.setattr(inbox, "CAPACITY", 4 * inbox.MOST_AT_ONCE)
    monkeypatch.setattr(inbox, "_SIZE", inbox._HEAD + inbox.CAPACITY)
    store = new_store()
    await store.open()
    box, acknowledged = inbox_of(store), set[str]()
    while box.freed == 0:
        id = f"job-{len(acknowledged)}"
        await store.add([[new_job(id, data=f'"{"x" * 1500}"', is_fresh=True)]])
        acknowledged.add(id)
    # It lies where the first records were. The system wrote it back, and the mark that gave it the room not yet.
    await store.add([[new_job("unknown", data=f'"{"x" * 1500}"', is_fresh=True)]])
    cut = tmp_path / "cut"
    cut.mkdir()
    for suffix in ("", "-wal", "-inbox"):
        shutil.copy(f"{path}{suffix}", cut / f"ropeway.db{suffix}")
    with (cut / "ropeway.db-inbox").open("r+b") as ring:
        ring.seek(inbox._FREED)
        ring.write(bytes(8))

    for number in range(2):
        after = SQLiteStore.from_url(f"sqlite:///{cut}/ropeway.db")
        await after.add([[new_job(f"after-{number}", is_fresh=True)]])
        acknowledged.add(f"after-{number}")
        assert await waiting(after) >= acknowledged
        await after.close()


def test_a_ring_whose_mark_is_behind_is_neither_wiped_nor_removed(path: Path):
    path.touch()
    box = open_inbox(str(path), KEY, lambda: 0)
    ingested = 0
    while ingested < 2 * inbox.CAPACITY:
        assert box.put(b"x" * 1_000)
        _, ingested = box.read(ingested)
        box.free(ingested)
    assert box.put(b"acknowledged")
    set_mark(box, 0)
    abandon(box)

    box = open_inbox(str(path), KEY, lambda: ingested)
    assert box.read(ingested)[0] == [b"acknowledged"]
    box.close()
    assert Path(f"{path}-inbox").exists()


def test_a_mark_is_never_seen_half_written(path: Path):
    path.touch()
    box = open_inbox(str(path), KEY, lambda: 0)
    with pytest.raises(TypeError):
        inbox._mark.pack_into(box._map, inbox._FREED, 1)
    box.close()


async def test_who_could_not_open_it_once_finds_jobs_later(
    path: Path, new_store: NewStore, monkeypatch: pytest.MonkeyPatch
):
    def fail(*_: Any, **__: Any) -> Inbox:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(ingest, "TRY_EVERY", 0)
    worker = new_store()
    with monkeypatch.context() as broken:
        broken.setattr(inbox, "open_inbox", fail)
        await worker.open()
        assert (await worker.claim(claim_request())).jobs == []
    add_and_die(path)

    assert [job.id for job in (await worker.claim(claim_request())).jobs] == ["a"]


async def test_a_ring_is_shared_as_its_file_is(path: Path):
    """Also if root makes it: then it belongs to the owner of the file."""
    opening.open_file(str(path)).close()
    path.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(path, 65_534, 65_534)
    file = path.stat()
    add_and_die(path)

    ring = Path(f"{path}-inbox").stat()
    assert (ring.st_uid, ring.st_gid, ring.st_mode) == (file.st_uid, file.st_gid, file.st_mode)


async def test_a_ring_that_cannot_be_written_is_done_without(store: SQLiteStore, monkeypatch: pytest.MonkeyPatch):
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(inbox, "_write_all", full)
    await store.add([[new_job("a", is_fresh=True)]])
    await asyncio.to_thread(store.add_blocking, [[new_job("b", is_fresh=True)]])

    assert await waiting(store) == {"a", "b"}


async def test_a_file_of_another_unreleased_version_is_refused(path: Path, new_store: NewStore):
    connection = opening.open_file(str(path))
    connection.execute("DROP TABLE inbox")
    connection.close()

    with pytest.raises(StoreRefused, match="not those of this version"):
        await new_store().open()


async def test_a_transaction_after_a_fork_comes_after_what_was_acknowledged(path: Path, store: SQLiteStore):
    await store.count(QUEUE)
    assert in_a_forked_child(lambda: None)
    add_and_die(path)

    inside = store.own()
    await inside.begin()
    await inside.add([new_job("b")])
    await inside.commit()

    assert [job.id for job in (await store.claim(claim_request(10))).jobs] == ["a", "b"]


async def test_a_record_that_cannot_be_read_is_said(store: SQLiteStore):
    assert inbox_of(store).put(b"\xc1")

    with pytest.raises(StoreCorrupt, match="-inbox"):
        await store.count(QUEUE)


async def test_what_the_file_cannot_store_is_not_acknowledged(store: SQLiteStore):
    with pytest.raises(OverflowError):
        await store.add([[new_job("bad", priority=2**63, is_fresh=True)]])
    await store.add([[new_job("good", is_fresh=True)]])

    assert await waiting(store) == {"good"}


def test_a_signal_behind_the_turn_lets_others_go_on(path: Path, monkeypatch: pytest.MonkeyPatch):
    path.touch()
    box, other = open_inbox(str(path), KEY, lambda: 0), open_inbox(str(path), KEY, lambda: 0)
    take = box._take_turn

    def be_interrupted() -> bool:
        take()
        raise KeyboardInterrupt

    with monkeypatch.context() as interrupted:
        interrupted.setattr(box, "_take_turn", be_interrupted)
        with pytest.raises(KeyboardInterrupt):
            box.put(b"a")

    assert other.put(b"b")
    box.close()
    other.close()


async def test_what_is_not_about_jobs_waits_for_no_writer(path: Path, new_store: NewStore):
    store = new_store(patience=600)
    await store.add([[new_job("a", is_fresh=True)]])
    with processes.writing(path):
        await store.clock()
        await store.settings(QUEUE)
        await store.recall("worker")
        await store.revoked(QUEUE)


def test_the_client_says_which_ids_it_made():
    from ropeway.client.new_jobs import new_job as requested

    made = requested("letters", "send", None, {}, {}, 1_000)
    brought = requested("letters", "send", None, {"id": "mine"}, {}, 1_000)

    assert (made.is_fresh, brought.is_fresh) == (True, False)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(made), type=type(made)) == made


async def test_room_that_cannot_be_freed_hurts_nobody(
    store: SQLiteStore, path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    await store.add([[new_job("a", is_fresh=True)]])

    def fail(_: Inbox, __: int) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    with monkeypatch.context() as full:
        full.setattr(Inbox, "free", fail)
        for id in ("b", "c"):
            [[added]] = await store.add([[new_job(id)]])
            assert added.verdict == "created"
    assert [record.message for record in caplog.records if "no space left" in record.message][1:] == []

    await store.add([[new_job("d")]])
    assert not inbox_of(store).has_unfreed
    assert await waiting(store) == {"a", "b", "c", "d"}


async def test_a_sync_that_failed_in_one_thread_failed_for_all_who_waited_for_it(
    store: SQLiteStore, path: Path, monkeypatch: pytest.MonkeyPatch
):
    await store.add([[new_job("before", is_fresh=True)]])
    is_syncing, both_are_put = threading.Event(), threading.Event()
    put, sync = Inbox.put, wal.sync_file

    def put_and_tell(box: Inbox, body: bytes) -> bool:
        is_put = put(box, body)
        if is_syncing.is_set():
            both_are_put.set()
        return is_put

    def fail_once(file: int) -> None:
        if is_syncing.is_set():
            # The system has told of the failure before, and the blocks look clean.
            sync(file)
            return
        is_syncing.set()
        both_are_put.wait()
        raise OSError(errno.EIO, "the disk is broken")

    monkeypatch.setattr(Inbox, "put", put_and_tell)
    monkeypatch.setattr(inbox, "sync_file", fail_once)
    here = asyncio.create_task(asyncio.to_thread(store.add_blocking, [[new_job("here", is_fresh=True)]]))
    await asyncio.to_thread(is_syncing.wait)
    beside = asyncio.create_task(store.add([[new_job("beside", is_fresh=True)]]))

    failed = await asyncio.gather(here, beside, return_exceptions=True)
    assert [type(error) for error in failed] == [StoreUnavailable, StoreUnavailable]
