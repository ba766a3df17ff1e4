"""A parent that keeps worker processes running: it starts them, starts them again, and ends with them.

Every child is a program of its own, never a fork: what a parent has open, such as an SQLite file, must not be shared.
Its standard input is a pipe that only the parent holds, so that it ends, in good order, however the parent dies. By it
the parent also tells how the others ended: a line for each, of its pid and what happened.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from ..logger import log
from ..worker.process_exits import EXITS_KEPT, exit_text, note_exit
from ..worker.signals import stopped_by_signals
from .exit_codes import ExitCode
from .reloading import Sources

FIRST_PAUSE: Final = 0.5
LONGEST_PAUSE: Final = 30.0
WELL_AFTER: Final = 10.0
"""Seconds after which a process counts as well: its end is then no reason to wait."""
_STOPS: Final = (
    (signal.SIGTERM, "are asked to stop"),
    (signal.SIGTERM, "are asked to hurry"),
    (signal.SIGKILL, "are killed"),
)
HOPELESS: Final = (ExitCode.USAGE, ExitCode.APP)
"""What no restart can help: only a change of the app can."""


class Supervisor:
    def __init__(self, command: Sequence[str], processes: int, sources: Sources | None) -> None:
        self._command = command
        self._processes = processes
        self._sources = sources
        self._children: set[asyncio.subprocess.Process] = set()
        self._ends: deque[str] = deque(maxlen=EXITS_KEPT)
        self._stops = 0
        self._ending = asyncio.Event()
        """This generation of processes is to end: for good, or to be started anew."""

    async def run(self) -> int:
        """Answers the worst exit code of the processes that ran last."""
        with stopped_by_signals(self.stop):
            while True:
                self._ending.clear()
                code = await self._generation()
                if self._stops or self._sources is None:
                    return code
                log.info("starting anew")

    def stop(self) -> None:
        """Asked once, the processes end in good order; twice, in a hurry; thrice, they are killed."""
        self._stops += 1
        number, how = _STOPS[min(self._stops, len(_STOPS)) - 1]
        log.info("the processes %s", how)
        self._end(number)

    def _end(self, number: signal.Signals) -> None:
        self._ending.set()
        for child in self._children:
            _send(child, number)

    async def _generation(self) -> int:
        watching = self._sources and asyncio.create_task(self._watch(self._sources))
        try:
            codes = await asyncio.gather(*(self._keep(number) for number in range(1, self._processes + 1)))
        finally:
            if watching:
                watching.cancel()
        return max(codes)

    async def _watch(self, sources: Sources) -> None:
        while True:
            try:
                log.info("%s changed", await sources.changed())
                break
            except Exception:  # noqa: BLE001 - it is logged, and tried again
                # Such as a machine that has no thread left: without a word, edits would seem to have no effect.
                log.exception("changes cannot be looked for; it is tried again in %.1f s", LONGEST_PAUSE)
                await asyncio.sleep(LONGEST_PAUSE)
        self._end(signal.SIGTERM)

    async def _keep(self, number: int) -> int:
        """Keeps one process running until it is to end; answers its exit code."""
        pause = FIRST_PAUSE
        while True:
            began = time.monotonic()
            code = await self._run(number)
            if self._ending.is_set():
                return code
            if code in HOPELESS:
                return await self._give_up(code)
            pause = FIRST_PAUSE if time.monotonic() - began > WELL_AFTER else min(pause * 2, LONGEST_PAUSE)
            log.error("process %d ended with exit code %d; it is started again in %.1f s", number, code, pause)
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._ending.wait()
                return code

    async def _run(self, number: int) -> int:
        child = await asyncio.create_subprocess_exec(
            *self._command,
            "--supervised",
            f"{number}/{self._processes}",
            stdin=asyncio.subprocess.PIPE,
            # Ctrl-C in a terminal is for the parent, which passes it on once.
            start_new_session=True,
        )
        self._children.add(child)
        _tell(child, *self._ends)
        try:
            if self._ending.is_set():
                _send(child, signal.SIGTERM)
            code = await child.wait()
        finally:
            self._children.discard(child)
        self._announce(child.pid, code)
        if code == -signal.SIGTERM and self._ending.is_set():
            # It was asked to end before it could listen: there was nothing to lose.
            return ExitCode.OK
        return code if code >= 0 else 128 - code

    def _announce(self, pid: int, code: int) -> None:
        end = f"{pid} {exit_text(code)}\n"
        self._ends.append(end)
        for child in self._children:
            _tell(child, end)

    async def _give_up(self, code: int) -> int:
        """The app cannot be loaded: with `--reload` a change may help, and otherwise all end."""
        if self._sources is None:
            self._end(signal.SIGTERM)
        else:
            await self._ending.wait()
        return code


def _send(child: asyncio.subprocess.Process, number: signal.Signals) -> None:
    # Not child.send_signal(): it may take the exit code of one that has just ended, and asyncio then knows none.
    with suppress(ProcessLookupError):
        os.kill(child.pid, number)


def _tell(child: asyncio.subprocess.Process, *lines: str) -> None:
    # One that has just ended has closed its pipe, and one that does not read has room for more than is ever said.
    if lines and child.stdin is not None and not child.stdin.is_closing():
        child.stdin.write("".join(lines).encode())


def heed_parent() -> None:
    """In a child: hears how others ended, and is asked to stop when the parent is gone, however it went."""

    def watch() -> None:
        with suppress(OSError), open(0, "rb", closefd=False) as told:
            for line in told:
                pid, _, how = line.decode().rstrip().partition(" ")
                note_exit(int(pid), how)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="ropeway-parent", daemon=True).start()


def command_line(arguments: Sequence[str]) -> list[str]:
    """This program again, with other arguments."""
    return [sys.executable, "-m", "ropeway", *arguments]
