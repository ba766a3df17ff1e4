"""Creates, checks, migrates and opens files.

A new file is made whole under another name and then linked into place, so a file that is empty, or half made, was
never ours and is refused.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Sequence
from typing import Final

import apsw

from ...errors import StoreCorrupt, StoreMissing, StoreVersion
from .errors import RECOVERY, as_store_error
from .folders import check_file, check_folder
from .statements import migrations
from .watching import keep_wal_on_close

APPLICATION_ID: Final = 0x526F7065
"""The letters "Rope" in the file's header, by which Ropeway recognises its files."""
QUICK_CHECK_LIMIT: Final = 32 * 1024 * 1024
BUSY_TIMEOUT: Final = 1_000
"""Milliseconds that readers wait for a lock; the writer has a longer limit."""
CACHE_KIB: Final = 64 * 1024


def open_file(
    path: str,
    *,
    creates: bool = True,
    allows_network: bool = False,
    scripts: Sequence[str] | None = None,
    vfs: str | None = None,
) -> apsw.Connection:
    """Opens a file, which is created or migrated if needed; raises the errors of the store."""
    scripts = migrations() if scripts is None else scripts
    check_folder(path, allows_network=allows_network)
    try:
        if not os.path.lexists(path):
            if not creates:
                raise StoreMissing(path, "there is no such file: check the path, or add a first job there")
            _create(path, scripts, vfs)
        check_file(path)
        connection = connect(path, vfs)
    except (apsw.Error, OSError) as error:
        raise as_store_error(path, error) from error
    try:
        _check_contents(connection, path, len(scripts))
        _migrate(connection, scripts)
    except BaseException as error:
        refusal = as_store_error(path, error)
        if isinstance(refusal, StoreCorrupt):
            keep_wal_on_close(connection)
        connection.close(force=True)
        raise refusal from error
    return connection


def connect(path: str, vfs: str | None = None, *, is_new: bool = False) -> apsw.Connection:
    """Opens an existing file of Ropeway's. Files of other programs are refused unchanged."""
    connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE, vfs=vfs, statementcachesize=200)
    try:
        connection.set_busy_timeout(BUSY_TIMEOUT)
        if not is_new:
            _check_owner(connection, path)
        # Without it SQLite plans a statement anew for each value that is bound, at five times its cost.
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        connection.pragma("journal_mode", "wal")
        # The writer does it, at a better moment.
        connection.wal_autocheckpoint(0)
        connection.pragma("cache_size", -CACHE_KIB)
        connection.pragma("temp_store", "memory")
        # What a stranger writes into the schema is not run by us.
        connection.pragma("trusted_schema", False)
    except BaseException:
        # It may be damaged, or somebody else's.
        keep_wal_on_close(connection)
        connection.close(force=True)
        raise
    return connection


def _check_owner(connection: apsw.Connection, path: str) -> None:
    if connection.pragma("application_id") != APPLICATION_ID:
        raise StoreCorrupt(
            path, f"it is a database, but not one of Ropeway's: use another path. If it once was, {RECOVERY}"
        )


def _create(path: str, scripts: Sequence[str], vfs: str | None) -> None:
    unfinished = f"{path}.new-{os.getpid()}-{secrets.token_hex(4)}"
    os.close(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    try:
        connection = connect(unfinished, vfs, is_new=True)
        try:
            connection.pragma("synchronous", "FULL")
            _migrate(connection, scripts)
        finally:
            # The last one to close a file writes its -wal back, and syncs it.
            connection.close()
        # Of several processes that make the file at once, one wins; the others use its file.
        with contextlib.suppress(FileExistsError):
            os.link(unfinished, path)
        _sync_folder(os.path.dirname(path))  # noqa: PTH120 - text paths are enough
    finally:
        for suffix in ("", "-wal", "-shm"):
            with contextlib.suppress(OSError):
                os.unlink(unfinished + suffix)  # noqa: PTH108
    _remove_unfinished(path)


def _remove_unfinished(path: str) -> None:
    """Deletes files of processes that were killed while they created the file."""
    folder, name = os.path.split(path)
    for left in os.listdir(folder):  # noqa: PTH208
        if left.startswith(f"{name}.new-"):
            owner = left[len(name) + 5 :].partition("-")[0]
            if owner.isdecimal() and not _is_alive(int(owner)):
                with contextlib.suppress(OSError):
                    os.unlink(os.path.join(folder, left))  # noqa: PTH108, PTH118


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _sync_folder(folder: str) -> None:
    if os.name == "nt":
        # Folders cannot be opened there, and need not be.
        return
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _check_contents(connection: apsw.Connection, path: str, version: int) -> None:
    found = connection.pragma("user_version")
    if found > version:
        raise StoreVersion(
            path, f"it has version {found}, this Ropeway knows {version}: upgrade Ropeway here too, or use another file"
        )
    pages: int = connection.pragma("page_count")
    if pages * connection.pragma("page_size") <= QUICK_CHECK_LIMIT:
        problems = [problem for (problem,) in connection.execute("PRAGMA quick_check(10)")]
        if problems != ["ok"]:
            raise StoreCorrupt(path, f"the file is damaged ({'; '.join(problems):.300}): {RECOVERY}")


def _migrate(connection: apsw.Connection, scripts: Sequence[str]) -> None:
    """Migrates the file to the newest version, in one transaction."""
    if connection.pragma("user_version") == len(scripts):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Again, under the lock: another process may have done it meanwhile.
        for script in scripts[connection.pragma("user_version") :]:
            connection.execute(script)
        connection.pragma("application_id", APPLICATION_ID)
        connection.pragma("user_version", len(scripts))
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
