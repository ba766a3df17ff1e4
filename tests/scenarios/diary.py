"""What the handlers of one process did, written so that a kill loses nothing."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from ropeway import Job, SyncJob


class Line(msgspec.Struct, frozen=True, omit_defaults=True):
    what: str
    """`start` and `end` of a handler; other words are a scenario's own."""
    pid: int
    at: float
    """On the monotonic clock, which all processes of a machine share."""
    claimed_at: float = 0
    """On the same clock."""
    job: str = ""
    attempt: int = 0
    start: int = 0
    """How often the job had been started, this time included."""
    token: str = ""
    note: str = ""


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Line).decode


class Diary:
    """Each line is one append, so it is in the file before the handler goes on."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def write(self, what: str, job: Job | SyncJob | None = None, note: str = "") -> None:
        now = time.monotonic()
        if job is None:
            line = Line(what, os.getpid(), now, note=note)
        else:
            record = job.record
            claimed_at = now - (time.time() - (record.started_at or 0) / 1000)
            line = Line(
                what, os.getpid(), now, claimed_at, job.id, job.attempt, record.attempts_started, job.token, note
            )
        os.write(self._file, _encode(line) + b"\n")


class DiaryReader:
    """The lines so far; reading again costs only what is new."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0
        self._lines: list[Line] = []

    def lines(self) -> list[Line]:
        if self._path.exists():
            with self._path.open("rb") as file:
                file.seek(self._read)
                text = file.read()
            whole = text[: text.rfind(b"\n") + 1]
            self._read += len(whole)
            self._lines += [_decode(line) for line in whole.splitlines()]
        return self._lines
