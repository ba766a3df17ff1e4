from __future__ import annotations

import signal
import socket
from collections.abc import Iterator

import pytest

from ropeway.job.ids import new_worker_id
from ropeway.job.stalls import process_of
from ropeway.worker.process_exits import EXITS_KEPT, PROCESS_EXITS, exit_text, note_exit


@pytest.fixture(autouse=True)
def nothing_known() -> Iterator[None]:
    PROCESS_EXITS.clear()
    yield
    PROCESS_EXITS.clear()


@pytest.mark.parametrize(
    ("code", "how"),
    [
        (0, "ended with exit code 0"),
        (3, "ended with exit code 3"),
        (-signal.SIGSEGV, "was killed by SIGSEGV (signal 11)"),
        (-63, "was killed by signal 63"),
    ],
)
def test_an_end_is_said_in_words(code: int, how: str):
    assert exit_text(code) == how


def test_an_end_is_found_by_the_id_of_a_worker_of_the_process(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("socket.gethostname", lambda: "host")
    monkeypatch.setattr("os.getpid", lambda: 7)
    note_exit(7, "ended with exit code 3")

    assert PROCESS_EXITS[process_of(new_worker_id())] == "ended with exit code 3"


def test_only_the_newest_ends_are_kept():
    for pid in range(EXITS_KEPT + 5):
        note_exit(pid, "ended with exit code 1")

    assert len(PROCESS_EXITS) == EXITS_KEPT
    assert f"{socket.gethostname()}:4" not in PROCESS_EXITS
