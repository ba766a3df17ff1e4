"""Inspects a file, its folder and the library, without creating or migrating the file."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from typing import Final

import apsw

from ...errors import RopewayError
from ...store.inspection import Finding, Inspection, Level
from .errors import as_store_error
from .folders import DOUBTFUL, NETWORK, check_file, check_folder, filesystem
from .opening import connect
from .statements import migrations
from .target import Target
from .watching import WAL_ALARM

SAFE_SQLITE: Final = (3, 51, 3)
LITTLE_SPACE: Final = 1024**3
TOO_LITTLE_SPACE: Final = 64 * 1024**2


def inspect(target: Target) -> Inspection:
    scripts = migrations()
    findings = [_library(apsw.sqlite_lib_version())]
    try:
        check_folder(target.path, allows_network=True)
        if not os.path.lexists(target.path):
            findings += _location(target)
            return Inspection(exists=False, newest=len(scripts), migrations=scripts, findings=findings)
        check_file(target.path)
        version = _version(target)
    except (RopewayError, apsw.Error, OSError) as error:
        findings.append(
            Finding("file", "problem", str(as_store_error(target.path, error)), "mend what it says, and look again")
        )
        return Inspection(exists=os.path.lexists(target.path), newest=len(scripts), findings=findings)
    findings += [_schema(version, len(scripts)), *_file(target.path), *_location(target)]
    return Inspection(True, len(scripts), version, scripts[version:], findings)


def _version(target: Target) -> int:
    connection = connect(target.path, target.vfs)
    try:
        version: int = connection.pragma("user_version")
        return version
    finally:
        connection.close()


def _schema(version: int, newest: int) -> Finding:
    if version > newest:
        what = f"the file has version {version}, this Ropeway knows {newest}"
        return Finding("schema", "problem", what, "upgrade Ropeway here too, or use another file")
    if version < newest:
        what = f"the file has version {version}, this Ropeway makes version {newest} of it"
        return Finding("schema", "warning", what, "run `ropeway migrate`; workers do it too when they start")
    return Finding("schema", "ok", f"version {version}, the newest")


def _library(version: str) -> Finding:
    if tuple(int(part) for part in version.split(".")[:3]) < SAFE_SQLITE:
        what = f"SQLite {version} can damage a file when several processes write at once"
        return Finding("sqlite", "problem", what, 'pip install --upgrade "apsw>=3.51.3"')
    return Finding("sqlite", "ok", f"SQLite {version}")


def _file(path: str) -> Iterator[Finding]:
    found = os.stat(path)  # noqa: PTH116 - text paths are enough
    mode = stat.S_IMODE(found.st_mode)
    if mode & 0o022:
        what = f"others than its owner may write the file (mode {mode:o})"
        yield Finding("permissions", "warning", what, f"chmod go-w {path}")
    elif hasattr(os, "geteuid") and found.st_uid != os.geteuid():
        what = f"the file belongs to user {found.st_uid}, and this is user {os.geteuid()}"
        yield Finding("permissions", "warning", what, "run workers and commands as one user")
    else:
        yield Finding("permissions", "ok", f"mode {mode:o}")
    yield _wal(f"{path}-wal")
    yield _inbox(f"{path}-inbox")


def _wal(path: str) -> Finding:
    try:
        size = os.stat(path).st_size  # noqa: PTH116
    except OSError:
        size = 0
    if size > WAL_ALARM:
        what = f"{path} has grown to {size // 1024**2} MiB"
        return Finding("wal", "warning", what, "end the program that keeps a read transaction open on the file")
    return Finding("wal", "ok", f"{size / 1024**2:.1f} MiB in the -wal")


def _inbox(path: str) -> Finding:
    if not os.path.lexists(path):
        return Finding("inbox", "ok", "none now")
    if os.path.islink(path) or not os.path.isfile(path) or not os.access(path, os.R_OK | os.W_OK):  # noqa: PTH113, PTH114
        what = f"{path} cannot be used: jobs that are added singly take longer, and may be found a second later"
        return Finding("inbox", "warning", what, "give it the owner and the mode that the file has")
    return Finding("inbox", "ok", "usable; jobs that are added one by one go through it, which is faster")


def _location(target: Target) -> Iterator[Finding]:
    folder = os.path.dirname(target.path)  # noqa: PTH120
    kind = filesystem(folder) or "of unknown kind"
    if kind in NETWORK and not target.allows_network:
        remedy = "use a local disk, or add ?allow_network=1 if only this machine uses the file"
        yield Finding("file system", "problem", f"{folder} lies on a network ({kind})", remedy)
    elif kind in NETWORK | DOUBTFUL:
        remedy = "make sure that only one machine uses the file"
        yield Finding("file system", "warning", f"{folder} lies on {kind}, which machines may share", remedy)
    elif kind in ("tmpfs", "ramfs"):
        remedy = "use a folder on a disk, unless jobs may be lost"
        yield Finding("file system", "warning", f"{folder} lies in memory ({kind}): a restart forgets it", remedy)
    else:
        yield Finding("file system", "ok", kind)
    yield _space(folder)


def _space(folder: str) -> Finding:
    free = shutil.disk_usage(folder).free
    if free < LITTLE_SPACE:
        level: Level = "problem" if free < TOO_LITTLE_SPACE else "warning"
        return Finding(
            "disk space", level, f"{free // 1024**2} MiB left in {folder}", "free some space, or move the file"
        )
    return Finding("disk space", "ok", f"{free / 1024**3:.0f} GiB left")
