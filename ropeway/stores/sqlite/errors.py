"""Translates errors of SQLite into those of Ropeway, each with its remedy."""

from __future__ import annotations

import os
from typing import Final

import apsw

from ...errors import (
    RopewayError,
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreRefused,
    StoreUnavailable,
)
from ...store.doubt import unknown

RECOVERY: Final = (
    "nothing was written to it. Stop all workers, keep a copy of the file with its -wal, -shm and -inbox, and restore "
    'a backup, or save what can be read with: sqlite3 FILE ".recover" | sqlite3 NEWFILE'
)


def reraise_from_signal(error: OSError) -> None:
    """Raises an error again that came from a signal handler, such as a TimeoutError; the system's have a number."""
    if error.errno is None:
        raise error


def as_store_error(path: str, error: BaseException) -> BaseException:
    """Returns the store's error for `error`; one that has nothing to do with the file stays as it is."""
    if isinstance(error, RopewayError):
        return error
    found: StoreError
    match error:
        case apsw.BusyError() | apsw.LockedError():
            found = StoreBusy(path, "other processes held its lock for too long; repeat the call")
        case apsw.FullError():
            found = StoreFull(path, "the disk is full: free some space and repeat the call; no restart is needed")
        case apsw.CorruptError() | apsw.NotADBError():
            found = StoreCorrupt(path, f"the file is damaged ({error}): {RECOVERY}")
        case apsw.ReadOnlyError() | apsw.PermissionsError() | apsw.AuthError():
            found = StoreReadOnly(path, f"it cannot be written ({error}): check its owner and mode, and its folder's")
        case apsw.SQLError() if "no such" in str(error):
            found = StoreRefused(
                path,
                f"its tables are not those of this version ({error}): another, unreleased one made it. Move the file "
                "away, with its -wal, -shm and -inbox, or use the version that made it",
            )
        case apsw.CantOpenError():
            found = StoreUnavailable(path, f"it cannot be opened ({error}): {_remedy()}")
        case OSError(errno=None):
            # A signal handler's, not the system's: a TimeoutError, say.
            return error
        case apsw.Error() | OSError() | MemoryError():
            found = unknown(path, f"{type(error).__name__}: {error}")
        case _:
            return error
    found.__cause__ = error
    return found


def _remedy() -> str:
    """Returns what to do if a file cannot be opened; as SQLite does not say why, it tries if file handles ran out."""
    spare: list[int] = []
    try:
        # The file, its -wal and its -shm. Not these themselves: closing one would drop the locks of all connections.
        for _ in range(3):
            spare.append(os.open(os.devnull, os.O_RDONLY))  # noqa: PERF401 - each must be closed
    except OSError as shortage:
        return f"{shortage.strerror}; close some, or raise the limit (ulimit -n)"
    finally:
        for fd in spare:
            os.close(fd)
    return "check that folder and file can be read and written"


def ends_connection(error: BaseException) -> bool:
    """True for errors after which a connection is in an unknown state and must be closed."""
    return isinstance(error, apsw.IOError | apsw.CorruptError | apsw.NotADBError | apsw.InternalError | apsw.NoMemError)
