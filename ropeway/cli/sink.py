"""Standard error, written by a separate thread, so that a pipe that nobody reads cannot block a worker.

Lines wait in a bounded queue. When it is full, lines are dropped, and their number is written as soon as
there is room again. At the end of the program the rest is waited for, but not for long.
"""

from __future__ import annotations

import logging
import os
import select
import sys
import threading
from collections import deque
from contextlib import suppress
from typing import Final, TextIO, TypeAlias

import click

MOST_WAITING: Final = 1024 * 1024
"""Most characters that wait to be written."""
LAST_WAIT: Final = 1.0
"""Seconds that the program's exit waits for unwritten lines."""

OVERHEAD: Final = 200
"""The cost of a line in addition to its characters."""

Line: TypeAlias = logging.LogRecord | str


class Sink:
    def __init__(self, stream: TextIO, formatter: logging.Formatter) -> None:
        self.stream = stream
        self.is_coloured = shows_colours(stream)
        self._formatter = formatter
        self._lines: deque[Line] = deque()
        self._waiting = 0
        """Characters of unwritten lines, including the one being written."""
        self._dropped = 0
        self._is_dropping = False
        self._change = threading.Condition()
        self._has_thread = True
        try:
            threading.Thread(target=self._run, name="ropeway-stderr", daemon=True).start()
        except RuntimeError:
            # The system starts no more threads: writes directly.
            self._has_thread = False
        os.register_at_fork(after_in_child=self._leave_thread)

    def put(self, line: Line) -> None:
        if not self._has_thread:
            self._write(line)
            return
        with self._change:
            if self._is_dropping or (self._waiting and self._waiting + _size(line) > MOST_WAITING):
                self._is_dropping = True
                self._dropped += 1
                return
            self._append(line)
            self._change.notify_all()

    def flush(self, seconds: float) -> None:
        """Waits until all is written, for at most that long."""
        with self._change:
            self._change.wait_for(lambda: not self._waiting, seconds)

    def _leave_thread(self) -> None:
        """Resets a forked child, which writes directly: it has no thread but the one that forked.

        What waits to be written is the parent's.
        """
        self._has_thread = False
        self._change = threading.Condition()
        self._lines.clear()
        self._waiting = 0

    def _run(self) -> None:
        while True:
            with self._change:
                self._change.wait_for(lambda: bool(self._lines))
                line = self._lines.popleft()
            is_written = self._write(line)
            with self._change:
                self._waiting -= _size(line)
                if not is_written:
                    self._dropped += 1
                if self._waiting <= MOST_WAITING // 2:
                    self._is_dropping = False
                    if self._dropped and is_written:
                        self._append(_drop_notice(self._dropped))
                        self._dropped = 0
                self._change.notify_all()

    def _append(self, line: Line) -> None:
        self._lines.append(line)
        self._waiting += _size(line)

    def _write(self, line: Line) -> bool:
        """Writes one line; False if that failed, because the reader is gone or the disk full. It is not retried."""
        try:
            text = line if isinstance(line, str) else self._formatter.format(line)
            _write(self.stream, f"{text}\n")
        except Exception:  # noqa: BLE001 - whatever it is, the lines after it shall be written
            return False
        return True


def shows_colours(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR")


_sinks: Final[list[Sink]] = []


def use(sink: Sink) -> None:
    """Makes `tell` write through this sink."""
    _sinks.append(sink)


def tell(text: str) -> None:
    """Writes to standard error, after all earlier log lines."""
    if (sink := _current()) is None:
        click.echo(text, err=True)
    else:
        sink.put(text if sink.is_coloured else click.unstyle(text))


def finish() -> None:
    """Waits a short time for unwritten lines."""
    if (sink := _current()) is not None:
        # Ctrl-C ends the wait.
        with suppress(KeyboardInterrupt):
            sink.flush(LAST_WAIT)


def _current() -> Sink | None:
    return _sinks[-1] if _sinks and _sinks[-1].stream is sys.stderr else None


def _size(line: Line) -> int:
    return OVERHEAD + (len(line) if isinstance(line, str) else len(str(line.msg)) + len(line.exc_text or ""))


def _drop_notice(dropped: int) -> logging.LogRecord:
    what = "log line was" if dropped == 1 else "log lines were"
    message = f"{dropped:,} {what} dropped: standard error was not read, or could not be written"
    record = logging.LogRecord("ropeway", logging.WARNING, __file__, 0, message, None, None)
    record.facts = {"dropped": dropped}
    return record


def _write(stream: TextIO, text: str) -> None:
    """Bypasses the stream's buffer and its lock, for which the interpreter's exit would wait for ever."""
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError):
        stream.write(text)
        stream.flush()
        return
    rest = memoryview(text.encode(stream.encoding, stream.errors or "backslashreplace"))
    while rest:
        try:
            rest = rest[os.write(descriptor, rest) :]
        except BlockingIOError:
            select.select([], [descriptor], [])
