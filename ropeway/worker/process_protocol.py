"""The protocol between a worker and its handler processes: one JSON message per line."""

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


class UpdateReply(msgspec.Struct, tag="reply", frozen=True):
    """To the process: the reply to an `Update`; with the text of the error if it was refused."""

    error: str | None = None


class Update(msgspec.Struct, tag="update", frozen=True):
    """From the process: progress, a log line, or new data."""

    token: str
    """The claim token of the run: a thread that outlived its handler may send updates while another job runs."""
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
    """True if the job's data does not fit the handler's signature."""
    postponed: Milliseconds | None = None


ToProcess: TypeAlias = Start | UpdateReply
FromProcess: TypeAlias = Update | Ended

LINE_LIMIT: Final = 64 * 1024 * 1024

_encode = msgspec.json.Encoder().encode
read_order = msgspec.json.Decoder(ToProcess).decode
read_report = msgspec.json.Decoder(FromProcess).decode


def encode_line(message: ToProcess | FromProcess) -> bytes:
    return _encode(message) + b"\n"
