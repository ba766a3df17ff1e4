"""Standard error that is not read, closed, or written by a forked child."""

from __future__ import annotations

import fcntl
import logging
import os
import re
from collections.abc import Iterator

import pytest

from ropeway.cli import sink as sinks
from ropeway.cli.logs import NeverBlocks, Pretty
from ropeway.cli.sink import Sink
from tests.patience import PATIENCE

LINE = "x" * 500


class Pipe:
    """As small as the system makes one: it is full after a few lines."""

    def __init__(self) -> None:
        self.reading, writing = os.pipe()
        fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
        self.stream = os.fdopen(writing, "w")

    def read_until(self, text: str) -> str:
        """What is written until the first line with this text has ended, and what came with its end."""
        read = ""
        while text not in read or not read.endswith("\n"):
            more = os.read(self.reading, 65536).decode()
            assert more, f"the end came after {read!r}"
            read += more
        return read


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    pipe = Pipe()
    yield pipe
    os.close(pipe.reading)
    pipe.stream.close()


def sink_of(pipe: Pipe) -> Sink:
    return Sink(pipe.stream, Pretty("", is_coloured=False))


def test_lines_come_in_order_and_the_dropped_ones_are_counted(pipe: Pipe, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sinks, "MOST_WAITING", 7_000)
    sink = sink_of(pipe)

    for number in range(1_000):
        sink.put(f"{number:04} {LINE}")
    kept: list[int] = []
    dropped = 0
    # Once, if this thread was quicker than the sink's; after each pause of it otherwise.
    while len(kept) + dropped < 1_000:
        for line in pipe.read_until("\n").splitlines():
            if line.endswith(LINE):
                kept.append(int(line[:4]))
            elif notice := re.search(r"WARNING ([\d,]+) log lines were dropped", line):
                dropped += int(notice[1].replace(",", ""))

    assert kept == sorted(set(kept))
    assert dropped > 0
    sink.put("as before")
    pipe.read_until("as before\n")


def test_the_end_waits_for_all_that_can_be_written(pipe: Pipe):
    sink = sink_of(pipe)
    sink.put("last words")

    sink.flush(PATIENCE)

    assert os.read(pipe.reading, 100) == b"last words\n"


def test_a_pipe_without_a_reader_takes_no_lines_and_no_time(pipe: Pipe):
    sink = sink_of(pipe)
    os.close(pipe.reading)

    for _ in range(100):
        sink.put(LINE)
    sink.flush(PATIENCE)

    assert sink._dropped == 100
    pipe.reading = os.open(os.devnull, os.O_RDONLY)


def test_a_pipe_that_refuses_to_block_is_waited_for(pipe: Pipe):
    os.set_blocking(pipe.stream.fileno(), False)
    sink = sink_of(pipe)

    for number in range(100):
        sink.put(f"{number} {LINE}")

    assert len(pipe.read_until(f"\n99 {LINE}\n").splitlines()) == 100


def test_what_is_logged_is_put_into_words_before_it_changes(pipe: Pipe):
    handler = NeverBlocks(sink_of(pipe))
    changing = ["before"]

    handler.handle(logging.LogRecord("app", logging.INFO, "app.py", 1, "it was %s", (changing,), None))
    changing[0] = "after"

    assert pipe.read_until("\n").endswith("INFO    app: it was ['before']\n")


def test_a_line_that_cannot_be_put_into_words_is_told(pipe: Pipe):
    handler = NeverBlocks(sink_of(pipe))

    handler.handle(logging.LogRecord("app", logging.INFO, "app.py", 7, "%d apples", ("two",), None))

    assert "of app.py:7\n" in pipe.read_until("TypeError: ")


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_writes_by_itself(pipe: Pipe):
    sink = sink_of(pipe)
    if not (pid := os.fork()):
        sink.put("from the child")
        os._exit(0)
    os.waitpid(pid, 0)

    assert os.read(pipe.reading, 100) == b"from the child\n"
