"""The content of a webhook's message."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from ..job.extras import Origin
from ..job.instants import Instant
from ..job.record import JobRecord


class _Job(msgspec.Struct, frozen=True, omit_defaults=True):
    queue: str
    id: str
    name: str
    data: msgspec.Raw
    attempts: int
    """Those that have ended, with the one that completed the job."""
    finished_at: str
    result: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    reason: str | msgspec.UnsetType = msgspec.UNSET


class _Message(msgspec.Struct, frozen=True):
    type: str
    timestamp: str
    data: _Job


_NULL = msgspec.Raw(b"null")
_encode = msgspec.json.Encoder().encode


def message_of(delivery: JobRecord, origin: Origin) -> bytes:
    """The same bytes at every attempt. Data and result are passed on as they are stored, without decoding."""
    ended_at = _text(origin.at)
    result: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    reason: str | msgspec.UnsetType = msgspec.UNSET
    attempts = origin.attempts
    if origin.event == "completed":
        attempts += 1  # the store counts those that failed
        result = _NULL if origin.result is None else msgspec.Raw(origin.result.encode())
    else:
        reason = origin.reason
    data = msgspec.Raw(delivery.data.encode())
    job = _Job(origin.queue, origin.id, delivery.name, data, attempts, ended_at, result, reason)
    return _encode(_Message(f"job.{origin.event}", ended_at, job))


def _text(instant: Instant) -> str:
    text = datetime.fromtimestamp(instant / 1000, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")
