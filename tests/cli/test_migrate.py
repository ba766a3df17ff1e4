"""Bringing a store to this version."""

from __future__ import annotations

from pathlib import Path

import apsw

from ropeway.cli.exit_codes import ExitCode
from ropeway.stores.sqlite.statements import migrations

from .conftest import Arrange, Ropeway

NEWEST = len(migrations())


def test_a_store_is_made_and_then_up_to_date(ropeway: Ropeway, tmp_path: Path):
    needed = ropeway("migrate", "--check")
    statements = ropeway("migrate", "--sql")
    assert not (tmp_path / "ropeway.db").exists()

    made = ropeway("migrate", "--json")
    again = ropeway("migrate")

    assert (needed.code, made.code, again.code) == (ExitCode.FAILED, ExitCode.OK, ExitCode.OK)
    assert "CREATE TABLE" in statements.out
    assert made.json == {"status": "made", "version": None, "newest": NEWEST}
    assert "up to date" in again.out
    assert ropeway("migrate", "--check").code == ExitCode.OK
    assert ropeway("migrate", "--sql").out.startswith("-- ")


def test_an_older_store_is_migrated_only_when_asked(ropeway: Ropeway, arrange: Arrange, tmp_path: Path):
    arrange.job()
    older = apsw.Connection(str(tmp_path / "ropeway.db"))
    older.pragma("user_version", NEWEST - 1)
    older.close()

    check = ropeway("migrate", "--check", "--json")
    told = ropeway("doctor")

    assert check.json == {"status": "needed", "version": NEWEST - 1, "newest": NEWEST}
    assert check.code == ExitCode.FAILED
    assert "ropeway migrate" in told.out


def test_a_newer_store_is_left_alone(ropeway: Ropeway, arrange: Arrange, tmp_path: Path):
    arrange.job()
    newer = apsw.Connection(str(tmp_path / "ropeway.db"))
    newer.pragma("user_version", NEWEST + 1)
    newer.close()

    ran = ropeway("migrate")

    assert (ran.code, ran.out) == (ExitCode.STORE, "")
    assert f"version {NEWEST + 1}" in ran.err


def test_what_is_no_store_is_left_alone(ropeway: Ropeway, tmp_path: Path):
    (tmp_path / "ropeway.db").write_bytes(b"x" * 5000)

    assert ropeway("migrate").code == ExitCode.STORE
    assert (tmp_path / "ropeway.db").read_bytes() == b"x" * 5000


def test_a_store_without_versions_says_so(ropeway: Ropeway):
    ran = ropeway("migrate", "--url", "memory://")

    assert (ran.code, ran.out) == (ExitCode.OK, "memory:// has nothing to migrate\n")


def test_check_and_sql_do_not_go_together(ropeway: Ropeway):
    assert ropeway("migrate", "--check", "--sql").code == ExitCode.USAGE
