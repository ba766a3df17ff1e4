"""Every way in which a file can be wrong is said clearly, and nothing is made in its place."""

# ruff: noqa: ASYNC240 - a test may wait for its own files

from __future__ import annotations

import asyncio
import os
import signal
import stat
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import apsw
import pytest

from ropeway.errors import StoreCorrupt, StoreError, StoreReadOnly, StoreRefused, StoreUnavailable, StoreVersion
from ropeway.store.url import connect
from ropeway.stores.sqlite import SQLiteStore, folders, opening, writer
from ropeway.stores.sqlite.statements import migrations
from ropeway.testing.factories import QUEUE, new_job, new_jobs

from . import processes
from .conftest import NewStore

ADDS_AND_DIES = """
async def main():
    store = new_store()
    await store.add([new_jobs(10)])
    os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main())
"""


async def fill_and_close(store: SQLiteStore, jobs: int = 100) -> None:
    await store.add([new_jobs(jobs)])
    await store.close()


async def test_only_the_owner_can_read_the_files(store: SQLiteStore, path: Path):
    await store.add([[new_job()]])
    listener = store.listen("jobs", [QUEUE])

    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}

    listener.close()
    files = dict.fromkeys(["ropeway.db", "ropeway.db-wal", "ropeway.db-shm", "ropeway.db-inbox"], 0o600)
    assert modes == {**files, "ropeway.db-wake": 0o700}


async def test_a_clean_close_leaves_one_file_with_everything(store: SQLiteStore, path: Path, new_store: NewStore):
    await fill_and_close(store)

    assert [file.name for file in path.parent.iterdir()] == ["ropeway.db"]
    assert (await new_store().count(QUEUE))["waiting"] == 100


async def test_an_empty_file_is_not_filled(path: Path, new_store: NewStore):
    path.touch()

    with pytest.raises(StoreCorrupt, match="empty"):
        await new_store().open()
    assert path.stat().st_size == 0


async def test_a_file_cut_to_nothing_is_refused(store: SQLiteStore, path: Path, new_store: NewStore):
    await fill_and_close(store)
    os.truncate(path, 0)

    with pytest.raises(StoreCorrupt, match="recover"):
        await new_store().add([[new_job()]])


@pytest.mark.parametrize("contents", [b"hello", b"x" * 5000, b"SQLite format 3\0"], ids=["short", "long", "cut"])
async def test_a_file_that_is_no_database_is_left_as_it_is(contents: bytes, path: Path, new_store: NewStore):
    path.write_bytes(contents)

    with pytest.raises(StoreCorrupt):
        await new_store().open()
    assert path.read_bytes() == contents


async def test_a_damaged_header_is_refused(store: SQLiteStore, path: Path, new_store: NewStore):
    await fill_and_close(store)
    with path.open("r+b") as file:
        file.write(b"\0" * 100)

    with pytest.raises(StoreCorrupt, match="recover"):
        await new_store().open()


async def test_a_zeroed_kilobyte_is_found_when_opening(store: SQLiteStore, path: Path, new_store: NewStore):
    await fill_and_close(store)
    with path.open("r+b") as file:
        file.seek(2 * 4096)
        file.write(b"\0" * 1024)

    with pytest.raises(StoreCorrupt, match="damaged"):
        await new_store().open()


async def test_what_lies_beside_a_damaged_file_stays_as_it_is(path: Path, new_store: NewStore):
    await asyncio.to_thread(processes.start(ADDS_AND_DIES, path).communicate)
    with path.open("r+b") as file:
        file.seek(2 * 4096)
        file.write(b"\0" * 10 * 4096)
    files = [path, Path(f"{path}-wal")]
    before = [file.read_bytes() for file in files]

    with pytest.raises(StoreCorrupt, match="damaged"):
        await new_store().open()

    assert [file.read_bytes() for file in files] == before


async def test_the_database_of_somebody_else_is_refused(path: Path, new_store: NewStore):
    other = apsw.Connection(str(path))
    other.execute("CREATE TABLE theirs (x)")
    other.close()

    with pytest.raises(StoreCorrupt, match="not one of Ropeway's"):
        await new_store().open()


async def test_a_file_of_a_newer_version_is_refused(store: SQLiteStore, path: Path, new_store: NewStore):
    await fill_and_close(store)
    later = apsw.Connection(str(path))
    later.pragma("user_version", len(migrations()) + 1)
    later.close()

    with pytest.raises(StoreVersion, match="upgrade"):
        await new_store().open()


async def test_a_missing_folder_is_named(tmp_path: Path):
    store = SQLiteStore.from_url(f"sqlite:///{tmp_path}/nowhere/jobs.db")

    with pytest.raises(StoreUnavailable, match=f"{tmp_path}/nowhere does not exist"):
        await store.open()


async def test_a_file_that_is_not_there_is_made_only_by_those_who_may(tmp_path: Path):
    path = tmp_path / "jobs.db"

    with pytest.raises(StoreUnavailable, match="no such file"):
        await connect(f"sqlite:///{path}", create=False).open()
    assert not path.exists()


async def test_one_that_may_not_make_the_file_uses_what_others_made(path: Path, store: SQLiteStore):
    await store.open()
    looking = connect(f"sqlite:///{path}", create=False)

    assert await looking.queues() == []
    await looking.close()


async def test_a_folder_is_no_file(tmp_path: Path):
    with pytest.raises(StoreUnavailable, match="folder"):
        await SQLiteStore.from_url(f"sqlite:///{tmp_path}").open()


AS_NOBODY = """
# Once as ourselves: nobody may not be able to read Python's own files, which are imported when first used.
import tempfile
with tempfile.TemporaryDirectory() as folder:
    target, path = path, folder + "/warm-up.db"
    async def warm_up():
        store = new_store()
        await store.add([[new_job()]])
        await store.close()
    asyncio.run(warm_up())
    path = target
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
try:
    asyncio.run(new_store().add([[new_job()]]))
except Exception as error:
    say(type(error).__name__)
"""


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """One that others can look into; pytest's own are for their owner alone."""
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)
        Path(folder).chmod(0o755)


@pytest.mark.parametrize(("folder_mode", "file_mode"), [(0o777, 0o444), (0o777, 0o000), (0o555, 0o666)])
def test_what_cannot_be_written_is_said(folder_mode: int, file_mode: int, open_folder: Path):
    path = open_folder / "ropeway.db"
    opening.open_file(str(path)).close()
    path.chmod(file_mode)
    open_folder.chmod(folder_mode)

    assert processes.run(AS_NOBODY, path).strip() == StoreReadOnly.__name__


def test_a_new_file_in_a_folder_that_cannot_be_written_is_said(open_folder: Path):
    open_folder.chmod(0o555)

    assert processes.run(AS_NOBODY, open_folder / "ropeway.db").strip() == StoreReadOnly.__name__


def mounts(folder: Path, kind: str) -> str:
    table = folder / "mountinfo"
    table.write_text(
        f"22 1 8:1 / / rw - ext4 /dev/vda rw\n30 22 0:40 / {folder}/my\\040share rw shared:1 - {kind} host:/share rw\n"
    )
    return str(table)


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "smb3", "fuse.sshfs"])
def test_a_network_file_system_is_refused_unless_allowed(kind: str, tmp_path: Path):
    table = mounts(tmp_path, kind)
    share = tmp_path / "my share"
    share.mkdir()
    path = f"{share}/jobs.db"

    with pytest.raises(StoreRefused, match="allow_network=1"):
        folders.check_folder(path, allows_network=False, mounts=table)
    folders.check_folder(path, allows_network=True, mounts=table)
    folders.check_folder(f"{tmp_path}/jobs.db", allows_network=False, mounts=table)


def test_a_folder_of_the_host_is_warned_about(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    (tmp_path / "my share").mkdir()

    folders.check_folder(f"{tmp_path}/my share/jobs.db", allows_network=False, mounts=mounts(tmp_path, "9p"))

    assert "only one machine" in caplog.text


def test_where_mounts_are_not_told_nothing_is_refused(tmp_path: Path):
    assert folders.filesystem(str(tmp_path), mounts=f"{tmp_path}/none") == ""


async def test_one_file_under_two_names_is_refused(store: SQLiteStore, path: Path):
    os.link(path, path.parent / "other.db")
    other = SQLiteStore.from_url(f"sqlite:///{path.parent}/other.db")
    try:
        with pytest.raises(StoreRefused, match="same file"):
            await other.open()
    finally:
        await other.close()


async def test_a_link_to_a_file_is_that_file(store: SQLiteStore, path: Path):
    (path.parent / "link.db").symlink_to(path)
    linked = SQLiteStore.from_url(f"sqlite:///{path.parent}/link.db")
    await linked.add([[new_job()]])
    await linked.close()

    assert (await store.count(QUEUE))["waiting"] == 1


def test_eight_processes_that_open_a_new_file_at_once_share_it(path: Path):
    script = """
    async def main():
        store = new_store()
        say("ready")
        sys.stdin.readline()
        await store.add([[new_job(f"job-of-{os.getpid()}")]])
        await store.close()
    asyncio.run(main())
    """
    others = [processes.start(script, path) for _ in range(8)]
    for other in others:
        assert processes.line(other) == "ready"
    for other in others:
        processes.tell(other)
    for other in others:
        _, complaints = other.communicate()
        assert other.returncode == 0, complaints

    connection = apsw.Connection(str(path))
    assert connection.execute("SELECT count(*) FROM job").get == 8
    assert connection.pragma("integrity_check") == "ok"
    connection.close()
    assert [file.name for file in path.parent.iterdir()] == ["ropeway.db"]


KILLED_AT = """
import apsw
from ropeway.stores.sqlite import opening
from ropeway.stores.sqlite.statements import migrations
steps = int(sys.argv[2]) if len(sys.argv) > 2 else int(os.environ["STEPS"])
scripts = migrations() + os.environ.get("MORE", "").split("|")[1:]
taken = 0
def trace(cursor, sql, bindings):
    global taken
    taken += 1
    if taken == steps:
        os.kill(os.getpid(), signal.SIGKILL)
    return True
connect = opening.connect
def traced(*arguments, **options):
    connection = connect(*arguments, **options)
    connection.exec_trace = trace
    return connection
opening.connect = traced
opening.open_file(path, scripts=scripts).close()
say("whole")
"""


@pytest.mark.parametrize("steps", [2, 4, 9, 14, 20, 24])
async def test_a_process_killed_while_making_the_file_leaves_none(steps: int, path: Path, new_store: NewStore):
    killed = processes.start(KILLED_AT, path, env={**os.environ, "STEPS": str(steps)})
    killed.communicate()

    assert killed.returncode == -signal.SIGKILL
    assert not path.exists()
    await new_store().add([[new_job()]])
    assert not [file.name for file in path.parent.iterdir() if ".new-" in file.name]


MORE = (
    "|ALTER TABLE job ADD COLUMN extra TEXT; UPDATE job SET extra = 'x';"
    "|CREATE TABLE more (x); INSERT INTO more VALUES (1);"
)


@pytest.mark.parametrize("steps", range(3, 12))
async def test_a_process_killed_while_migrating_leaves_the_old_version(steps: int, store: SQLiteStore, path: Path):
    await fill_and_close(store)

    killed = processes.start(KILLED_AT, path, env={**os.environ, "STEPS": str(steps), "MORE": MORE})
    killed.communicate()
    connection = apsw.Connection(str(path))
    version = connection.pragma("user_version")
    has_new_table = connection.table_exists(None, "more")
    connection.close()

    assert killed.returncode == -signal.SIGKILL
    assert (version, has_new_table) == (1, False)
    assert processes.run(KILLED_AT, path, env={**os.environ, "STEPS": "-1", "MORE": MORE}).strip() == "whole"


async def test_an_older_file_is_migrated(store: SQLiteStore, path: Path):
    await fill_and_close(store)

    connection = opening.open_file(str(path), scripts=[*migrations(), "CREATE TABLE more (x)"])

    assert connection.pragma("user_version") == len(migrations()) + 1
    assert connection.table_exists(None, "more")
    connection.close()


async def test_a_migration_that_fails_leaves_the_old_version(store: SQLiteStore, path: Path):
    await fill_and_close(store)

    with pytest.raises(StoreError):
        opening.open_file(str(path), scripts=[*migrations(), "CREATE TABLE more (x); SELECT nonsense;"])

    connection = opening.open_file(str(path))
    assert not connection.table_exists(None, "more")
    connection.close()


async def test_a_wal_lost_while_stopped_loses_no_more_than_itself(path: Path, new_store: NewStore):
    await asyncio.to_thread(processes.start(ADDS_AND_DIES, path).communicate)
    Path(f"{path}-wal").unlink()
    Path(f"{path}-shm").unlink()

    counts = await new_store().count(QUEUE)

    assert counts["waiting"] == 0


async def test_a_file_with_other_tables_is_refused_for_good(store: SQLiteStore, path: Path, new_store: NewStore):
    await fill_and_close(store)
    other = apsw.Connection(str(path))
    other.execute("ALTER TABLE queue RENAME COLUMN events TO happenings")
    other.close()

    with pytest.raises(StoreRefused, match="its tables are not those of this version"):
        await new_store().count(QUEUE)


async def test_only_the_writer_reads_the_file_as_memory(store: SQLiteStore):
    await store.count(QUEUE)
    file = store._file
    assert file is not None
    assert file._writer is not None
    assert file._reader is not None

    sizes = [part._connection.pragma("mmap_size") for part in (file._writer, file._reader) if part._connection]

    assert sizes == [writer.MAPPED, 0]
