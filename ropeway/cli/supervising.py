"""The supervisor: a parent process that starts worker processes, restarts them, and ends with them.

Every child is a new program, never a fork: open files of the parent, such as an SQLite file, must not be shared.
Its standard input is a pipe held only by the parent, so that it shuts down gracefully however the parent dies. Through
it the parent also announces how other children ended: a line for each, with its pid and what happened.
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
"""Seconds after which a process counts as healthy: after its end it is restarted without a pause."""
_STOPS: Final = (
    (signal.SIGTERM, "are asked to stop"),
    (signal.SIGTERM, "are asked to hurry"),
    (signal.SIGKILL, "are killed"),
)
HOPELESS: Final = (ExitCode.USAGE, ExitCode.APP)
"""Exit codes after which a restart cannot help, only a change of the app."""


class Supervisor:
    def __init__(self, command: Sequence[str], processes: int, sources: Sources | None) -> None:
        self._command = command
        self._processes = processes
        self._sources = sources
        self._children: set[asyncio.subprocess.Process] = set()
        self._ends: deque[str] = deque(maxlen=EXITS_KEPT)
        self._stops = 0
        self._ending = asyncio.Event()
        """Set when the current processes shall end: for good, or to be restarted."""

    async def run(self) -> int:
        """Runs until it is stopped; returns the worst exit code of the last processes."""
        with stopped_by_signals(self.stop):
            while True:
                self._ending.clear()
                code = await self._generation()
                if self._stops or self._sources is None or not self._ending.is_set():
                    return code
                log.info("restarting")

    def stop(self) -> None:
        """First call: the processes shut down gracefully; second: hurriedly; third: they are killed."""
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
                # Such as a system that starts no more threads: without a message, edits would seem to have no effect.
                log.exception("changes cannot be looked for; it is tried again in %.1f s", LONGEST_PAUSE)
                await asyncio.sleep(LONGEST_PAUSE)
        self._end(signal.SIGTERM)

    async def _keep(self, number: int) -> int:
        """Keeps one process running until it shall end; returns its exit code."""
        pause = FIRST_PAUSE
        while True:
            began = time.monotonic()
            code = await self._run(number)
            if code == ExitCode.DRAINED:
                log.info("process %d was drained, and is not started again", number)
                return ExitCode.OK
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
            # Ctrl-C in a terminal must reach only the parent, which passes it on once.
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
            # It was stopped before it installed its signal handlers: no job was running.
            return ExitCode.OK
        return code if code >= 0 else 128 - code

    def _announce(self, pid: int, code: int) -> None:
        end = f"{pid} {exit_text(code)}\n"
        self._ends.append(end)
        for child in self._children:
            _tell(child, end)

    async def _give_up(self, code: int) -> int:
        """Handles an app that cannot be loaded: with `--reload` it waits for a change, otherwise all end."""
        if self._sources is None:
            self._end(signal.SIGTERM)
        else:
            await self._ending.wait()
        return code


def _send(child: asyncio.subprocess.Process, number: signal.Signals) -> None:
    # Not child.send_signal(): it may reap a child that has just ended, and asyncio then misses its exit code.
    with suppress(ProcessLookupError):
        os.kill(child.pid, number)


def _tell(child: asyncio.subprocess.Process, *lines: str) -> None:
    # A child that has just ended has closed its pipe; for one that does not read, the pipe's buffer is large enough.
    if lines and child.stdin is not None and not child.stdin.is_closing():
        child.stdin.write("".join(lines).encode())


def heed_parent() -> None:
    """Runs in a child: reads how other processes ended, and stops the worker when the parent is gone."""

    def watch() -> None:
        with suppress(OSError), open(0, "rb", closefd=False) as announced:
            for line in announced:
                pid, _, how = line.decode().rstrip().partition(" ")
                note_exit(int(pid), how)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="ropeway-parent", daemon=True).start()


def command_line(arguments: Sequence[str]) -> list[str]:
    """The command line of this program, with other arguments."""
    return [sys.executable, "-m", "ropeway", *arguments]
