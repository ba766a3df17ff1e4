"""Checks of a file and its folder before anything is opened."""

from __future__ import annotations

import os
from typing import Final

from ...errors import StoreCorrupt, StoreReadOnly, StoreRefused, StoreUnavailable
from .calls import LOG
from .errors import RECOVERY

NETWORK: Final = frozenset(
    [
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "ncpfs",
        "afs",
        "ceph",
        "glusterfs",
        "lustre",
        "beegfs",
        "gpfs",
        "ocfs2",
        "gfs2",
        "pvfs2",
        "fuse.sshfs",
        "fuse.glusterfs",
        "fuse.cephfs",
        "fuse.rclone",
        "fuse.s3fs",
        "fuse.gcsfuse",
        "fuse.davfs",
        "davfs",
    ]
)
DOUBTFUL: Final = frozenset(("9p", "virtiofs", "fuse"))
"""File systems of folders that containers and virtual machines share with their host, perhaps with others, too."""


def check_folder(path: str, *, allows_network: bool, mounts: str = "/proc/self/mountinfo") -> None:
    folder = os.path.dirname(path)  # noqa: PTH120 - text paths are enough
    if not os.path.isdir(folder):  # noqa: PTH112
        raise StoreUnavailable(path, f"the folder {folder} does not exist: create it, or use another path")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise StoreReadOnly(
            path, f"the folder {folder} cannot be written, and SQLite keeps files beside its own: change its mode"
        )
    if allows_network:
        return
    kind = filesystem(folder, mounts)
    if kind in NETWORK:
        raise StoreRefused(
            path,
            f"it lies on a network file system ({kind}), whose locks cannot be trusted when several machines write: "
            "use a local disk, or add ?allow_network=1 if only this machine uses the file",
        )
    if kind in DOUBTFUL:
        LOG.warning("%s lies on %s: make sure that only one machine or virtual machine uses it", path, kind)


def check_file(path: str) -> None:
    """Checks a file without opening it: closing it again would drop the locks of this process's connections."""
    if os.path.isdir(path):  # noqa: PTH112
        raise StoreUnavailable(path, "it is a folder: use the path of a file")
    if not os.access(path, os.R_OK | os.W_OK):
        raise StoreReadOnly(path, "the file cannot be read and written: check its owner and mode")
    if os.stat(path).st_size == 0:  # noqa: PTH116
        raise StoreCorrupt(path, f"the file is empty, and Ropeway never leaves one so: {RECOVERY}")


def filesystem(folder: str, mounts: str = "/proc/self/mountinfo") -> str:
    """Type of the file system that a folder is on; empty if it is unknown."""
    try:
        with open(mounts, encoding="utf-8", errors="surrogateescape") as lines:  # noqa: PTH123
            found = [_mount(line) for line in lines]
    except OSError:
        return ""
    inside = [(mount, kind) for mount, kind in found if f"{folder}/".startswith(f"{mount.rstrip('/')}/")]
    # Of several on one point the last hides the others.
    return max(enumerate(inside), key=lambda each: (len(each[1][0]), each[0]))[1][1] if inside else ""


def _mount(line: str) -> tuple[str, str]:
    before, _, after = line.partition(" - ")
    fields, kind = before.split(), after.split()
    if len(fields) < 5 or not kind:
        return "?", ""
    return fields[4].replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\"), kind[0]
