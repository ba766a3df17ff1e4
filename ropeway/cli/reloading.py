"""Detecting changed source files by polling: it works on every file system, without dependencies."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, TypeAlias

LOOK_EVERY: Final = 0.3
_NOT_SOURCES: Final = {"__pycache__", "node_modules", "site-packages", "venv"}

State: TypeAlias = dict[str, tuple[int, int]]


class Sources:
    """The `.py` files under some folders; hidden folders and those of installed packages are left out."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = folders
        self._seen = self._state()

    async def changed(self) -> str:
        """Waits for a change; returns the changed file."""
        while True:
            await asyncio.sleep(LOOK_EVERY)
            seen, now = self._seen, await asyncio.to_thread(self._state)
            if seen != now:
                self._seen = now
                return min(path for path in {*seen, *now} if seen.get(path) != now.get(path))

    def _state(self) -> State:
        return dict(fact for folder in self._folders for fact in _facts(str(folder)))


def _facts(folder: str) -> Iterator[tuple[str, tuple[int, int]]]:
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        if entry.name.startswith(".") or entry.name in _NOT_SOURCES:
            continue
        try:
            if entry.is_dir(follow_symlinks=False):
                yield from _facts(entry.path)
            elif entry.name.endswith(".py"):
                found = entry.stat()
                yield entry.path, (found.st_mtime_ns, found.st_size)
        except OSError:
            # It was removed meanwhile, which is a change too.
            continue
