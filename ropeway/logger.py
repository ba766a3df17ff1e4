"""The library's logger: its handlers never block the code that logs.

A logging handler that writes to a pipe which nobody reads blocks, and with it a worker's event loop, or the thread that
renews its locks. So a thread calls the handlers:

    log.warning(...) -> queue -> thread -> handlers of the logger `ropeway` and of the root

The caller waits for its line, for a short time: so lines keep their order, and code that reads the log right after a
call (as `caplog` does) finds them. After a wait that timed out, further lines are queued without waiting. The queue is
bounded: when it is full, lines are dropped, and their number is logged once the handlers go on.

Handlers that only put lines into a queue (`logging.handlers.QueueHandler`) are called at once.
"""

from __future__ import annotations

import atexit
import contextvars
import logging
import os
import threading
from collections.abc import Iterator
from logging.handlers import QueueHandler
from queue import SimpleQueue
from typing import Final

LONGEST_WAIT: Final = 0.1
"""Seconds that a caller waits for the handlers."""
LAST_WAIT: Final = 1.0
"""Seconds that the program's exit waits for the handlers."""
MOST_WAITING: Final = 1_000
"""Most lines that wait for blocked handlers."""


class _Line:
    """A queued log record, with the caller's context variables, which filters may read."""

    __slots__ = ("context", "error", "handled", "record")

    def __init__(self, record: logging.LogRecord | None) -> None:
        self.record = record
        self.context = contextvars.copy_context()
        self.error: BaseException | None = None
        self.handled = threading.Lock()
        """A lock that is released once the handlers have returned."""
        self.handled.acquire()


class _Handover:
    """Calls the handlers of a logger in a separate thread."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._begin()
        # Runs before logging's own exit function, which waits for handlers without a limit.
        atexit.register(self._finish)
        os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        """Initialises the state; also in a forked child, which has neither the thread nor the lines of its parent."""
        self._lines: SimpleQueue[_Line] = SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._late: _Line | None = None
        """The last line for which a caller gave up waiting."""
        self._dropped = 0

    def handle(self, record: logging.LogRecord) -> None:
        if threading.current_thread() is self._thread or not self._has_thread():
            self._logger.handle(record)
            return
        if self._lines.qsize() >= MOST_WAITING:
            with self._lock:
                self._dropped += 1
            return
        line = _Line(record)
        self._lines.put(line)
        if self._late is not None and self._late.handled.locked():
            return
        if not line.handled.acquire(timeout=LONGEST_WAIT):
            self._late = line
        elif line.error is not None:
            raise line.error

    def _finish(self) -> None:
        """Waits for queued lines, for a limited time."""
        if self._thread is not None:
            last = _Line(None)
            self._lines.put(last)
            last.handled.acquire(timeout=LAST_WAIT)

    def _has_thread(self) -> bool:
        with self._lock:
            if self._thread is None:
                thread = threading.Thread(target=self._run, name="ropeway-log", daemon=True)
                try:
                    thread.start()
                except RuntimeError:
                    # The interpreter ends, or the system starts no more threads.
                    return False
                self._thread = thread
        return True

    def _run(self) -> None:
        lines = self._lines
        while True:
            line = lines.get()
            try:
                if line.record is not None:
                    line.context.run(self._logger.handle, line.record)
            except BaseException as error:  # noqa: BLE001 - it is raised where the line was logged
                line.error = error
            line.handled.release()
            del line
            if self._dropped and lines.empty():
                self._report_dropped()

    def _report_dropped(self) -> None:
        with self._lock:
            dropped, self._dropped = self._dropped, 0
        self._logger.warning("%s log lines were dropped: the handlers of this log were blocked", f"{dropped:,}")


class _Logger(logging.Logger):
    """Creates records as the logger of its name would, and queues them for that logger's handlers."""

    def __init__(self, logger: logging.Logger) -> None:
        super().__init__(logger.name)
        self._logger = logger
        self._handover = _Handover(logger)

    def isEnabledFor(self, level: int) -> bool:  # noqa: N802 - a name of logging's
        return self._logger.isEnabledFor(level)

    def handle(self, record: logging.LogRecord) -> None:
        if _only_queues(self._logger):
            self._logger.handle(record)
        else:
            self._handover.handle(record)


def _only_queues(logger: logging.Logger) -> bool:
    handlers = list(_handlers(logger))
    return bool(handlers) and all(isinstance(handler, QueueHandler) for handler in handlers)


def _handlers(logger: logging.Logger | None) -> Iterator[logging.Handler]:
    while logger is not None:
        yield from logger.handlers
        logger = logger.parent if logger.propagate else None


log: Final[logging.Logger] = _Logger(logging.getLogger("ropeway"))
