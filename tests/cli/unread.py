"""Programs whose output nobody reads."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .processes import Programs, children_of, until


class Unread:
    """A program that writes to two pipes: nothing is read from them before `read`."""

    def __init__(self, command: list[str], programs: Programs) -> None:
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=programs.folder,
            env=programs.environment(PYTHONUNBUFFERED="1"),
        )
        self.told = bytearray()
        """What was read of standard error."""
        self._readers: list[threading.Thread] = []

    def read(self) -> None:
        """Reads both from here on, in threads."""
        for pipe in (self.process.stdout, self.process.stderr):
            self._readers.append(threading.Thread(target=self._read, args=(pipe,)))
            self._readers[-1].start()

    def close(self) -> None:
        """As a reader that went away."""
        for reader in self._readers:
            reader.join()
        for pipe in (self.process.stdout, self.process.stderr):
            assert pipe is not None
            pipe.close()

    def says(self, text: str) -> None:
        """Waits until it was read."""
        until(lambda: text.encode() in self.told, repr(text))

    def _read(self, pipe: Any) -> None:
        while read := os.read(pipe.fileno(), 65536):
            if pipe is self.process.stderr:
                self.told += read


@contextmanager
def unread(command: list[str], programs: Programs) -> Iterator[Unread]:
    program = Unread(command, programs)
    try:
        yield program
    finally:
        for pid in (*children_of(program.process.pid), program.process.pid):
            if program.process.poll() is None:
                os.kill(pid, 9)
        program.process.wait()
        program.close()
