"""A look at a file that makes, opens and changes nothing."""

# ruff: noqa: ASYNC240 - a test may wait for its own files

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import apsw
import pytest

from ropeway.store.inspection import Finding, Inspection
from ropeway.store.url import connect
from ropeway.stores.sqlite import SQLiteStore, inspecting
from ropeway.stores.sqlite.statements import migrations

from .conftest import NewStore


def about(inspection: Inspection, check: str) -> Finding:
    [finding] = [finding for finding in inspection.findings if finding.check == check]
    return finding


def test_a_file_is_inspectable_and_memory_is_not():
    assert connect("sqlite:///ropeway.db").offers.inspection is not None
    assert connect("memory://").offers.inspection is None


async def test_looking_for_a_file_does_not_make_it(path: Path, new_store: NewStore):
    inspection = new_store().inspect()

    assert (inspection.exists, inspection.version, inspection.migrations) == (False, None, migrations())
    assert list(path.parent.iterdir()) == []


async def test_a_file_of_this_version_has_nothing_to_migrate(store: SQLiteStore):
    inspection = store.inspect()

    assert inspection.exists
    assert (inspection.version, inspection.newest, inspection.migrations) == (len(migrations()), len(migrations()), [])
    assert {finding.check for finding in inspection.findings} >= {
        "sqlite",
        "schema",
        "permissions",
        "wal",
        "inbox",
        "disk space",
    }
    assert about(inspection, "schema").level == about(inspection, "permissions").level == "ok"


async def test_an_older_file_is_told_and_left_as_it_is(store: SQLiteStore, path: Path, new_store: NewStore):
    await store.close()
    older = apsw.Connection(str(path))
    older.pragma("user_version", len(migrations()) - 1)

    inspection = new_store().inspect()

    assert inspection.migrations == migrations()[-1:]
    assert "ropeway migrate" in about(inspection, "schema").remedy
    assert older.pragma("user_version") == len(migrations()) - 1
    older.close()


async def test_a_file_of_a_newer_version_is_a_problem(store: SQLiteStore, path: Path, new_store: NewStore):
    await store.close()
    later = apsw.Connection(str(path))
    later.pragma("user_version", len(migrations()) + 1)
    later.close()

    assert about(new_store().inspect(), "schema").level == "problem"


async def test_what_is_no_store_is_a_problem_and_no_exception(path: Path, new_store: NewStore):
    path.write_bytes(b"x" * 5000)

    inspection = new_store().inspect()

    assert (inspection.exists, inspection.version) == (True, None)
    assert about(inspection, "file").level == "problem"


async def test_a_file_that_others_may_write_is_a_warning(store: SQLiteStore, path: Path):
    path.chmod(0o666)

    assert about(store.inspect(), "permissions").remedy == f"chmod go-w {path}"


@pytest.mark.parametrize(("free", "level"), [(10**6, "problem"), (10**8, "warning"), (10**11, "ok")])
async def test_little_space_is_said(store: SQLiteStore, monkeypatch: pytest.MonkeyPatch, free: int, level: str):
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=free))

    assert about(store.inspect(), "disk space").level == level


@pytest.mark.parametrize(
    ("kind", "level"), [("nfs4", "problem"), ("9p", "warning"), ("tmpfs", "warning"), ("ext4", "ok"), ("", "ok")]
)
async def test_where_the_file_lies_is_judged(
    store: SQLiteStore, monkeypatch: pytest.MonkeyPatch, kind: str, level: str
):
    monkeypatch.setattr(inspecting, "filesystem", lambda _: kind)

    assert about(store.inspect(), "file system").level == level


async def test_an_sqlite_with_the_known_fault_is_a_problem(store: SQLiteStore, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("apsw.sqlite_lib_version", lambda: "3.51.2")

    assert about(store.inspect(), "sqlite").level == "problem"


async def test_a_long_wal_is_a_warning(store: SQLiteStore, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(inspecting, "WAL_ALARM", -1)

    assert about(store.inspect(), "wal").level == "warning"


async def test_an_inbox_that_nobody_needs_is_not_missed(store: SQLiteStore, ring: Path, new_store: NewStore):
    assert about(store.inspect(), "inbox").level == "ok"
    await store.close()
    assert not ring.exists()

    assert about(new_store().inspect(), "inbox").level == "ok"


async def test_an_inbox_that_cannot_be_used_is_a_warning(store: SQLiteStore, ring: Path, new_store: NewStore):
    await store.close()
    ring.mkdir()

    found = about(new_store().inspect(), "inbox")

    assert found.level == "warning"
    assert str(ring) in found.what
