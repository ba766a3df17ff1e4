"""Servers of Ropeway for tests: one that all tests of a process share, and others that tests may maltreat."""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]


class BrokerProcess:
    """A server on a SQLite file in its folder, at a port that it keeps, and on a Unix socket."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = 0
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def path(self) -> Path:
        return self.folder / "broker.sock"

    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def url_by(self, place: str, *, tls: bool, **options: str) -> str:
        query = "&".join(f"{name}={value}" for name, value in options.items())
        return f"http{'s' if tls else ''}://{place}?{query}"

    def start(self) -> None:
        self._process = start(str(self.folder), str(self.port))
        self.port = port_of(self._process)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def start(*arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.stores.broker_app", *arguments],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )


def port_of(process: subprocess.Popen[bytes]) -> int:
    """Waits until it serves."""
    assert process.stdout is not None
    return int(process.stdout.readline())


def broker_place(store: str) -> str:
    """The URL at which a server serves this store, of a folder that is gone when the test has ended."""
    return f"http://127.0.0.1:{_shared_port(os.getpid())}/place/{store.encode().hex()}"


@cache
def _shared_port(pid: int) -> int:
    process = start()
    atexit.register(_end, process, pid)
    return port_of(process)


def _end(process: subprocess.Popen[bytes], pid: int) -> None:
    # A forked child that ends in a regular way has inherited this.
    if pid == os.getpid():
        process.communicate()
