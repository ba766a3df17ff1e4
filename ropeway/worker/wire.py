"""What a worker and its handler processes say to each other: one JSON text per line."""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec

from ..job.codec import JsonText
from ..job.failure import Failure
from ..job.instants import Milliseconds
from ..job.record import JobRecord


class Start(msgspec.Struct, tag="start", frozen=True):
    """To the process: run this job."""

    record: JobRecord
    size_limit: int


class Told(msgspec.Struct, tag="told", frozen=True):
    """To the process: the answer to an `Update`; an error's text if it was refused."""

    error: str | None = None


class Update(msgspec.Struct, tag="update", frozen=True):
    """From the process: progress, a line for the log, or new data."""

    token: str
    """Of the run that it belongs to: something that outlived its handler may speak while another job runs."""
    progress: JsonText | None = None
    log: str | None = None
    data: JsonText | None = None


class Ended(msgspec.Struct, tag="ended", frozen=True):
    """From the process: how the handler ended."""

    token: str
    result: JsonText | None = None
    failure: Failure | None = None
    fatal: bool = False
    refused: bool = False
    """The job's data is not what the handler takes."""
    postponed: Milliseconds | None = None


ToProcess: TypeAlias = Start | Told
FromProcess: TypeAlias = Update | Ended

LINE_LIMIT: Final = 64 * 1024 * 1024

_encode = msgspec.json.Encoder().encode
read_order = msgspec.json.Decoder(ToProcess).decode
read_report = msgspec.json.Decoder(FromProcess).decode


def line(message: ToProcess | FromProcess) -> bytes:
    return _encode(message) + b"\n"
