"""Commands as programs of their own, with real signals, pipes and terminals."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from tests.patience import PATIENCE

ROOT: Final = Path(__file__).parents[2]

COMMAND: Final = (sys.executable, "-m", "ropeway")
_IN_TERMINAL: Final = (
    # Makes the terminal the one whose Ctrl-C the program hears.
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
)


def until(condition: Callable[[], Any], what: str) -> Any:
    deadline = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < deadline, f"{what} did not happen within {PATIENCE:g} s"
        time.sleep(0.02)
    return found


def is_alive(pid: int) -> bool:
    return _state_of(pid) not in ("", "Z")


def _state_of(pid: int) -> str:
    """One letter of the kernel's; empty for a process that is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def children_of(pid: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[1]) == pid and fields[0] != "Z":
                found.append(int(stat.parent.name))
    return sorted(found)


class Program:
    """A program that runs, and what it has said so far."""

    def __init__(self, folder: Path, number: int, arguments: tuple[str, ...], environment: dict[str, str]) -> None:
        self._out, self._err = folder / f"{number}.out", folder / f"{number}.err"
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.process = subprocess.Popen(
                [*COMMAND, *arguments], stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=folder, env=environment
            )
        self.pid = self.process.pid

    @property
    def raw(self) -> bytes:
        return self._out.read_bytes()

    @property
    def out(self) -> str:
        return self._out.read_text()

    @property
    def err(self) -> str:
        return self._err.read_text()

    def says(self, text: str, times: int = 1) -> None:
        """Waits until it has said that, wherever and so many times."""

        def said() -> bool:
            has_ended = self.process.poll() is not None
            found = (self.out + self.err).count(text) >= times
            assert found or not has_ended, f"it ended with {self.process.returncode}, saying {self.err[-2000:]}"
            return found

        until(said, f"{text!r}")

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def exit_code(self) -> int:
        """Waits for its end."""
        return self.process.wait(PATIENCE)


class Terminal:
    """A program in a terminal of its own."""

    def __init__(self, arguments: tuple[str, ...], environment: dict[str, str], folder: Path, columns: int) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        environment = {**environment, "TERM": "xterm-256color", "COLUMNS": str(columns)}
        self.process = subprocess.Popen(
            [sys.executable, "-c", _IN_TERMINAL, *COMMAND, *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=folder,
            env=environment,
            start_new_session=True,
        )
        os.close(theirs)
        self.text = ""

    def shows(self, text: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while text not in self.text:
            assert self._read(deadline), f"{text!r} was not shown: {self.text!r}"

    def rests(self) -> None:
        """Waits until the program does nothing but wait for its terminal.

        A Ctrl-C between the last look for signals and the wait itself is one that Python notices only with the next.
        """
        looks = 0
        while looks < 5:
            looks = looks + 1 if _state_of(self.process.pid) == "S" else 0
            time.sleep(0.01)

    def types(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def exit_code(self) -> int:
        """Waits for its end, and has all of its text then."""
        deadline = time.monotonic() + PATIENCE
        while self._read(deadline):
            pass
        return self.process.wait(PATIENCE)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._ours)

    def _read(self, deadline: float) -> bool:
        ready, _, _ = select.select([self._ours], [], [], max(0, deadline - time.monotonic()))
        assert ready, f"nothing more was shown after {self.text!r}"
        try:
            read = os.read(self._ours, 65536)
        except OSError:
            # So a terminal says that its program has gone.
            return False
        self.text += read.decode()
        return bool(read)


class Programs:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._programs: list[Program] = []
        self._terminals: list[Terminal] = []

    def environment(self, **more: str) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(ROOT), **more}

    def start(self, *arguments: str, **environment: str) -> Program:
        program = Program(self.folder, len(self._programs), arguments, self.environment(**environment))
        self._programs.append(program)
        return program

    def start_in_terminal(
        self, *arguments: str, columns: int = 100, environment: dict[str, str] | None = None
    ) -> Terminal:
        terminal = Terminal(arguments, self.environment(**(environment or {})), self.folder, columns)
        self._terminals.append(terminal)
        return terminal

    def end(self) -> None:
        for program in self._programs:
            if program.process.poll() is None:
                # Its children first: one that is stuck would not notice that it is gone.
                for child in children_of(program.pid):
                    os.kill(child, signal.SIGKILL)
                program.process.kill()
                program.process.wait()
        for terminal in self._terminals:
            terminal.close()
