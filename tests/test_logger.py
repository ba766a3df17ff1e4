"""The library's own lines: in order, at once, and never in anybody's way."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from logging.handlers import QueueHandler
from queue import SimpleQueue

import pytest

from ropeway import logger
from ropeway.logger import log
from tests.patience import PATIENCE

CONTEXT: ContextVar[str] = ContextVar("context", default="none")


class Recording(logging.Handler):
    """Keeps the lines it was given, and on which thread; may be made to block, or to raise."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.threads: set[str] = set()
        self.may_go_on = threading.Event()
        self.may_go_on.set()
        self.has_dropped = threading.Event()
        self.error: Exception | None = None

    def emit(self, record: logging.LogRecord) -> None:
        self.may_go_on.wait(PATIENCE)
        if self.error is not None:
            raise self.error
        self.threads.add(threading.current_thread().name)
        self.lines.append(record.getMessage())
        if "dropped" in record.getMessage():
            self.has_dropped.set()


@pytest.fixture
def recording() -> Iterator[Recording]:
    handler = Recording()
    real = logging.getLogger("ropeway")
    real.addHandler(handler)
    yield handler
    handler.may_go_on.set()
    real.removeHandler(handler)


def test_a_line_is_there_when_the_call_returns(recording: Recording):
    log.warning("%d of ours", 1)
    logging.getLogger("ropeway").warning("yours")
    log.error("2 of ours")

    assert recording.lines == ["1 of ours", "yours", "2 of ours"]


def test_levels_are_those_of_the_logger(recording: Recording, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.ERROR, "ropeway")

    log.warning("not wanted")

    assert recording.lines == []
    assert not log.isEnabledFor(logging.WARNING)


def test_a_line_tells_where_it_was_logged(caplog: pytest.LogCaptureFixture):
    log.warning("here")

    assert caplog.records[-1].filename == "test_logger.py"
    assert caplog.records[-1].threadName == threading.current_thread().name


def test_handlers_that_are_blocked_hold_up_nobody_and_later_tell_of_dropped_lines(
    recording: Recording, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(logger, "MOST_WAITING", 5)
    recording.may_go_on.clear()

    for number in range(20):
        log.warning("line %d", number)
    assert recording.lines == []
    recording.may_go_on.set()

    assert recording.has_dropped.wait(PATIENCE)
    # One was with the handlers, and five waited.
    assert recording.lines[:-1] == [f"line {number}" for number in range(6)]
    assert recording.lines[-1].startswith("14 log lines were dropped")
    log.warning("as before")
    assert recording.lines[-1] == "as before"


def test_an_error_of_a_handler_is_raised_where_the_line_was_logged(recording: Recording):
    recording.error = RuntimeError("no room")

    with pytest.raises(RuntimeError, match="no room"):
        log.warning("hello")


def test_filters_see_the_context_of_the_caller(recording: Recording):
    seen: list[str] = []

    def look(_: logging.LogRecord) -> bool:
        seen.append(CONTEXT.get())
        return True

    recording.addFilter(look)
    token = CONTEXT.set("mine")

    log.warning("hello")

    CONTEXT.reset(token)
    assert seen == ["mine"]


def test_a_handler_that_logs_a_line_of_ours_does_not_wait_for_itself(recording: Recording):
    def repeat(record: logging.LogRecord) -> bool:
        if not record.args:
            log.warning("again, %s", record.msg)
        return True

    recording.addFilter(repeat)

    log.warning("hello")

    assert recording.lines == ["again, hello", "hello"]


def test_handlers_that_only_queue_are_called_at_once(monkeypatch: pytest.MonkeyPatch):
    real = logging.getLogger("ropeway")
    queue: SimpleQueue[logging.LogRecord] = SimpleQueue()
    threads: list[threading.Thread] = []
    handler = QueueHandler(queue)

    def look(_: logging.LogRecord) -> bool:
        threads.append(threading.current_thread())
        return True

    handler.addFilter(look)
    monkeypatch.setattr(real, "propagate", False)
    monkeypatch.setattr(real, "handlers", [handler])

    log.warning("hello")

    assert queue.get_nowait().getMessage() == "hello"
    assert threads == [threading.current_thread()]


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_has_lines_of_its_own(recording: Recording):
    log.warning("before")
    reading, writing = os.pipe()
    if not (pid := os.fork()):
        log.warning("in the child")
        os.write(writing, "\n".join(recording.lines).encode())
        os._exit(0)
    os.waitpid(pid, 0)

    assert os.read(reading, 1000).decode().splitlines() == ["before", "in the child"]
    os.close(reading)
    os.close(writing)
