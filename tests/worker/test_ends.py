from __future__ import annotations

import signal
import socket
from collections.abc import Iterator

import pytest

from ropeway.job.ids import new_worker_id
from ropeway.job.stalls import process_of
from ropeway.worker.ends import ENDS, ENDS_KEPT, end_of, note_end


@pytest.fixture(autouse=True)
def nothing_known() -> Iterator[None]:
    ENDS.clear()
    yield
    ENDS.clear()


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
    assert end_of(code) == how


def test_an_end_is_found_by_the_id_of_a_worker_of_the_process(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("socket.gethostname", lambda: "host")
    monkeypatch.setattr("os.getpid", lambda: 7)
    note_end(7, "ended with exit code 3")

    assert ENDS[process_of(new_worker_id())] == "ended with exit code 3"


def test_only_the_newest_ends_are_kept():
    for pid in range(ENDS_KEPT + 5):
        note_end(pid, "ended with exit code 1")

    assert len(ENDS) == ENDS_KEPT
    assert f"{socket.gethostname()}:4" not in ENDS
