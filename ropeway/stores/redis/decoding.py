"""Decodes the answers of scripts that read."""

from __future__ import annotations

import struct
from typing import Any, Final

import msgspec
from msgspec.structs import force_setattr

from ...job.events import Entry, trim_entry
from ...job.flows import CHILD_STATES, ChildState, Policy
from ...job.states import STATES
from ...store.values import (
    Children,
    ChildStatus,
    Counts,
    Entries,
    FailedAttempt,
    History,
    LogLine,
    LogPage,
    Metric,
    Record,
    Settings,
    StoredEntry,
)
from .constants import CHILD_CODES, METRICS, POLICY_CODES
from .ids import DAMAGED, text_of

_entry: Final = msgspec.json.Decoder(Entry).decode
_failure: Final = msgspec.msgpack.Decoder(tuple[int, int, str | None, str, str]).decode
_line: Final = msgspec.msgpack.Decoder(tuple[int, str]).decode
_record: Final = msgspec.msgpack.Decoder(tuple[int, int | bool, str]).decode

_CHILD_STATES: Final[dict[bytes, ChildState]] = {CHILD_CODES[state].encode(): state for state in CHILD_STATES}
_POLICIES: Final[dict[bytes, Policy]] = {code.encode(): policy for policy, code in POLICY_CODES.items()}


class Row(msgspec.Struct, frozen=True):
    """Counters and settings of a queue, in the order of `lua/lib/row.lua`."""

    paused_names: tuple[str, ...] = ()
    format: int = 0
    epoch: int = 0
    at: int = 0
    skew: int = 0
    seq: int = 0
    events: int = 0
    events_from: int = 0
    minute: int = 0
    revoked: int = 0
    is_configured: int = 0
    is_paused: int = 0
    max_active: int = 0
    waiting: int = 0
    waiting_children: int = 0
    delayed: int = 0
    active: int = 0
    completed: int = 0
    failed: int = 0
    cancelled: int = 0
    parked_until: int = 0
    added: int = 0
    headed_length: int = 0

    @property
    def counts(self) -> Counts:
        return {state: getattr(self, state.replace("-", "_")) for state in STATES}

    @property
    def settings(self) -> Settings:
        return Settings(bool(self.is_paused), self.paused_names, self.max_active or None)

    @property
    def exists(self) -> bool:
        return bool(self.is_configured) or any(self.counts.values())


_NO_ROW: Final = Row()
_FORMAT: Final = 2
_numbers: Final = struct.Struct("<22d")
_names: Final = msgspec.msgpack.Decoder(tuple[str, ...]).decode


def row_of(stored: bytes | None) -> Row:
    """Decodes a row. Raises ValueError or `struct.error` if it is none, or of another format."""
    if stored is None:
        return _NO_ROW
    numbers = [int(number) for number in _numbers.unpack_from(stored)]
    if numbers[0] != _FORMAT:
        raise ValueError(f"a row of format {numbers[0]}, not {_FORMAT}")
    names = stored[_numbers.size + numbers[-1] :]
    return Row(_names(names) if names else (), *numbers)


def entries_of(answer: list[Any]) -> Entries:
    found, newest, gap, gone = answer
    is_gap = bool(gap)
    entries: list[StoredEntry] = []
    for id, body in found:
        try:
            entry = _entry(body)
            force_setattr(entry, "jobs", [(text_of(job_id), detail) for job_id, detail in entry.jobs])
            left = trim_entry(entry, int(id.partition(b"-")[0]), gone, is_newest=False)
            if left is not None:
                entries.append(StoredEntry(id.decode(), left))
        except (msgspec.DecodeError, *DAMAGED):
            # Damaged by somebody: the others are still worth reading.
            is_gap = True
    cursor = found[-1][0] if found else newest
    return Entries(entries, cursor.decode(), is_gap)


def read_event_id(after: str) -> tuple[int | bool, int | bool]:
    number, _, epoch = after.partition("-")
    if not all(part.isascii() and part.isdecimal() and len(part) < 16 for part in (number, epoch)):
        return False, False
    return int(number), int(epoch)


def history_of(answer: list[Any] | None) -> History | None:
    if answer is None:
        return None
    failures, lines, written = answer
    log = [LogLine(*_line(line)) for line in lines]
    return History([FailedAttempt(*_failure(failure)) for failure in failures], log, max(0, written - len(log)))


def children_of(answer: list[Any] | None) -> Children | None:
    if answer is None:
        return None
    found, after, total, completed, failed, cancelled, awaited = answer
    children = [_child(key, link) for key, link in zip(found[::2], found[1::2], strict=True)]
    pending = total - completed - failed - cancelled
    counts: dict[ChildState, int] = dict(zip(CHILD_STATES, (pending, completed, failed, cancelled), strict=True))
    return Children(children, counts, None if after is None else after.decode(), bool(awaited))


def _child(key: bytes, link: bytes) -> ChildStatus:
    queue, _, id = key.partition(b"/")
    state, policy, word = _CHILD_STATES[link[:1]], _POLICIES[link[1:2]], link[2:].decode() or None
    words = (word, None) if state == "completed" else (None, word)
    return ChildStatus(queue.decode(), text_of(id), policy, state, *words)


def log_of(answer: list[Any] | None, *, newest_first: bool) -> LogPage | None:
    if answer is None:
        return None
    packed, newest, last = answer
    lines = [LogLine(*_line(line)) for line in packed]
    return LogPage(lines[::-1] if newest_first else lines, newest, last)


def metrics_of(answer: list[Any]) -> list[Metric]:
    return [
        Metric(int(minute), **{name: int(number or 0) for name, number in zip(METRICS, numbers, strict=True)})
        for minute, numbers in zip(*answer, strict=True)
    ]


def record_of(kind: str, key: str, packed: bytes) -> Record:
    version, expires_at, value = _record(packed)
    return Record(kind, key, value, version, expires_at or None)
