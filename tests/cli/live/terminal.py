"""A program in a real terminal, whose screen can be read and whose keys can be pressed."""

from __future__ import annotations

import fcntl
import os
import re
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

ROOT: Final = Path(__file__).parents[3]

# It becomes the leader of a session whose terminal this is: then Ctrl-C is a signal, as at a real one.
_LOGIN: Final = (
    "import os, sys; os.login_tty(int(sys.argv[1])); os.execv(sys.executable, [sys.executable, *sys.argv[2:]])"
)
_ESCAPE: Final = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|[=>])")
_HOME: Final = "\x1b[H"


class Terminal:
    def __init__(self, *arguments: str, width: int = 80, height: int = 24, env: dict[str, str] | None = None) -> None:
        self._master, self._slave = os.openpty()
        self._said = b""
        self.resize(width, height)
        self.manners = self.current_manners()
        self.process = subprocess.Popen(
            [sys.executable, "-c", _LOGIN, str(self._slave), *arguments],
            env={**clean_environment(), "TERM": "xterm-256color", **(env or {})},
            pass_fds=[self._slave],
        )

    def current_manners(self) -> list[Any]:
        return termios.tcgetattr(self._slave)

    @property
    def output(self) -> str:
        """Everything that was written so far, escape sequences too."""
        while select.select([self._master], [], [], 0)[0]:
            self._said += os.read(self._master, 65_536)
        return self._said.decode(errors="replace")

    @property
    def screen(self) -> list[str]:
        """The newest whole frame."""
        frames = self.output.split(_HOME)
        newest = frames[-1] if frames[-1].count("\n") >= frames[-2].count("\n") else frames[-2]
        return _ESCAPE.sub("", newest).split("\r\n")

    def resize(self, width: int, height: int) -> None:
        fcntl.ioctl(self._slave, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def press(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def shows(self, text: str) -> bool:
        return self.output.count(_HOME) > 0 and any(text in line for line in self.screen)

    def until(self, condition: Callable[[], Any], what: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline, f"{what} did not happen; the terminal says {self.output[-3000:]!r}"
            assert self.process.poll() is None, f"it ended with {self.process.returncode}: {self.output[-3000:]}"
            time.sleep(0.01)

    def until_shown(self, text: str) -> None:
        self.until(lambda: self.shows(text), f"{text!r} on the screen")

    def exit_code(self) -> int:
        deadline = time.monotonic() + PATIENCE
        # What it writes must be read, or it would wait for that for ever.
        while self.process.poll() is None and time.monotonic() < deadline:
            assert self.output is not None
            time.sleep(0.01)
        return self.process.wait(1)

    def is_stopped(self) -> bool:
        return os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is not None

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        os.close(self._master)
        os.close(self._slave)


def clean_environment() -> dict[str, str]:
    """Without what the tests' own terminal says of itself."""
    unwanted = {
        "NO_COLOR",
        "FORCE_COLOR",
        "COLUMNS",
        "LINES",
        "ROPEWAY_URL",
        "PYTHONIOENCODING",
        "LC_ALL",
        "TTY_COMPATIBLE",
    }
    kept = {name: value for name, value in os.environ.items() if name not in unwanted}
    return {**kept, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"}
