"""Disks that fail, and one that remembers what it was told in which order."""

from __future__ import annotations

import errno
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import apsw

SECTOR: Final = 512


class Disk(apsw.VFS):
    """The real disk under another name. While it is in use it must be kept: SQLite knows only its name."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(name, "")

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - SQLite's names
        return DiskFile(self, name, flags)

    def before(self, action: str, file: str, *details: Any) -> None:
        """Called before each write, sync and truncate; what it raises, the call raises."""

    def sync(self, real: Callable[[int], None], name: str) -> Callable[[int], None]:
        """Stands in for the sync of the -wal, which does not go through SQLite."""

        def sync(file: int) -> None:
            try:
                self.before("sync", name)
            except apsw.Error as error:
                raise OSError(errno.EIO, str(error)) from error
            real(file)

        return sync


class DiskFile(apsw.VFSFile):
    def __init__(self, disk: Disk, name: Any, flags: list[int]) -> None:
        self._disk = disk
        self._name = Path(name.filename() if isinstance(name, apsw.URIFilename) else name).name
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        self._disk.before("write", self._name, offset, bytes(data))
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._disk.before("sync", self._name)
        super().xSync(flags)

    def xTruncate(self, size: int) -> None:  # noqa: N802
        self._disk.before("truncate", self._name, size)
        super().xTruncate(size)


class BadDisk(Disk):
    """Fails every call of one kind while `broken` says so."""

    broken: dict[str, type[apsw.Error]]

    def __init__(self, name: str) -> None:
        self.broken = {}
        super().__init__(name)

    def before(self, action: str, file: str, *details: Any) -> None:
        if action in self.broken:
            raise self.broken[action](f"{action} of {file} fails")


class RememberingDisk(Disk):
    """`log` is what happened, in order; tests may add to it."""

    def __init__(self, name: str) -> None:
        self.log: list[tuple[Any, ...]] = []
        super().__init__(name)

    def before(self, action: str, file: str, *details: Any) -> None:
        self.log.append((action, file, *details))


def after_power_loss(start: dict[str, bytes], log: list[tuple[Any, ...]], luck: random.Random) -> dict[str, bytearray]:
    """The files as a power cut after `log` may leave them.

    What was synced is there. Of what was not, each write is there, or not, or some of its sectors are.
    """
    files = {name: bytearray(contents) for name, contents in start.items()}
    last_sync = {entry[1]: at for at, entry in enumerate(log) if entry[0] == "sync"}
    for at, (action, name, *details) in enumerate(log):
        file = files.setdefault(name, bytearray())
        is_safe = at < last_sync.get(name, -1)
        if action == "truncate" and (is_safe or luck.random() < 0.5):
            del file[details[0] :]
        elif action == "write":
            offset, data = details
            pieces = [(offset, data)]
            if not is_safe:
                pieces = _torn(offset, data, luck)
            for begin, piece in pieces:
                file.extend(b"\0" * (begin + len(piece) - len(file)))
                file[begin : begin + len(piece)] = piece
    return files


def _torn(offset: int, data: bytes, luck: random.Random) -> list[tuple[int, bytes]]:
    fate = luck.random()
    if fate < 0.3:
        return []
    if fate < 0.6:
        return [(offset, data)]
    return [(offset + at, data[at : at + SECTOR]) for at in range(0, len(data), SECTOR) if luck.random() < 0.5]
