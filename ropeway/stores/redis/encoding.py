"""Packs arguments of scripts as MessagePack, and reads jobs and answer codes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any, Final

import msgspec
from msgspec.structs import force_setattr

from ...job.flows import Parent
from ...job.instants import LAST_INSTANT, Instant
from ...job.marks import Mark
from ...job.options import StoredOptions
from ...job.record import JobRecord
from ...job.retention import KEEP_FAILED
from ...store.answer_codes import answers_of as text_answers_of
from ...store.commands import Claim
from ...store.values import Answer, Claimed
from .ids import in_full, text_of

pack: Final[Callable[[Any], bytes]] = msgspec.msgpack.Encoder().encode
as_json: Final = msgspec.json.Encoder().encode
_records: Final[Callable[[bytes], list[JobRecord]]] = msgspec.msgpack.Decoder(list[JobRecord]).decode
_records_or_none: Final[Callable[[bytes], list[JobRecord | None]]] = msgspec.msgpack.Decoder(
    list[JobRecord | None]
).decode


def as_text(bytes_: bytes) -> msgspec.Raw:
    """Bytes as a MessagePack text, because Lua's decoder knows no binary type."""
    return msgspec.Raw(b"\xdb" + len(bytes_).to_bytes(4, "big") + bytes_)


_EXACT: Final = 2**53
_NO_OPTIONS: Final = StoredOptions()
DEFAULTS: Final = (
    _NO_OPTIONS.attempts,
    _NO_OPTIONS.stack_traces,
    False if KEEP_FAILED.age is None else KEEP_FAILED.age,
    False if KEEP_FAILED.count is None else KEEP_FAILED.count,
)
"""What holds for jobs that say nothing about it; scripts that end a job without its worker need it."""


def records(packed: bytes) -> list[JobRecord]:
    found = _records(packed)
    for record in found:
        force_setattr(record, "id", text_of(record.id))
        if record.parents:
            force_setattr(record, "parents", _in_full(record.parents))
    return found


def records_or_none(packed: bytes) -> list[JobRecord | None]:
    found = _records_or_none(packed)
    for record in found:
        if record is not None:
            force_setattr(record, "id", text_of(record.id))
            if record.parents:
                force_setattr(record, "parents", _in_full(record.parents))
            if record.marks:
                force_setattr(record, "marks", _by_name(record.marks))
    return found


def _by_name(marks: Iterable[Mark]) -> tuple[Mark, ...]:
    """Marks in their order: scripts cannot compare texts by bytes."""
    return tuple(sorted(marks, key=attrgetter("name")))


def _in_full(parents: Iterable[Parent]) -> tuple[Parent, ...]:
    """Parents whose ids are shortened."""
    return tuple(Parent(parent.queue, text_of(parent.id)) for parent in parents)


def answers_of(codes: bytes) -> list[Answer]:
    return text_answers_of(codes.decode())


def given(now: Instant | None) -> Instant | bool:
    """`now` as scripts take it: false for the server's clock."""
    return False if now is None else now


def bounded(number: int) -> int:
    """The number, or the nearest one that a double holds exactly; no real count comes near."""
    return max(-_EXACT, min(number, _EXACT))


def request_of(request: Claim) -> tuple[Any, ...]:
    names: Sequence[str] | bool = False if request.names is None else request.names
    worker = as_json(request.worker).decode()
    lock = min(request.lock, LAST_INSTANT)
    return request.token, request.worker, worker, request.limit, lock, names, request.repeat, request.isolates


_ARRAY: Final = b"\xdd"
_RECORD: Final = b"\xdc\x00"
"""How an array begins; the number of its fields follows, in one byte."""
_FIELDS: Final = b"\x17"
"""How many fields the record of a job without extras has: those up to `result`."""
_TEXT: Final = [b"\xd9" + bytes([length]) for length in range(256)]
"""How a text of each length begins; ids have at most 255 letters."""
_ACTIVE: Final = pack("active")
_PLAIN: Final = b"\x80\0\0\x80"
"""How the tail of a job without priority begins, first come, first served."""
_PLAIN_ACTIVE: Final = _ACTIVE + pack(0) + b"\xd3\0\0"
_INSTANT: Final = b"\xcf\0\0"


def claimed_of(request: Claim, answer: Sequence[Any]) -> Claimed:
    """Assembles the records of claimed jobs from the packed parts that the script returned."""
    now, again_at, ids, values, rests = answer
    if not ids:
        return Claimed([], now, again_at)
    # An array of fourteen begins with one byte; a record goes on with what follows it.
    fresh = pack(
        (0, 1, 0, None, request.token, request.worker, now, now, now + min(request.lock, LAST_INSTANT), *_NOTHING_YET)
    )[1:]
    queue = pack(request.queue)
    head = _RECORD + _FIELDS + queue
    pieces = [_ARRAY, len(ids).to_bytes(4, "big")]
    done = 0
    for first, last, rest in rests or ():
        _add_pieces(pieces, head, ids[done : first - 1], values[done : first - 1], fresh)
        _add_pieces(pieces, _RECORD + rest[:1] + queue, ids[first - 1 : last], values[first - 1 : last], rest[1:])
        done = last
    _add_pieces(pieces, head, ids[done:] if done else ids, values[done:] if done else values, fresh)
    jobs = _records(b"".join(pieces))
    for first, last, _ in rests or ():
        if jobs[first - 1].parents:
            parents = _in_full(jobs[first - 1].parents)
            for job in jobs[first - 1 : last]:
                force_setattr(job, "parents", parents)
        if jobs[first - 1].marks:
            marks = _by_name(jobs[first - 1].marks)
            for job in jobs[first - 1 : last]:
                force_setattr(job, "marks", marks)
    return Claimed(jobs, now, again_at)


def _add_pieces(pieces: list[bytes], head: bytes, ids: Sequence[bytes], values: Sequence[bytes], rest: bytes) -> None:
    """Appends the pieces of records that begin and end alike."""
    for stored, value in zip(ids, values, strict=True):
        id = in_full(stored)
        if value[-16:-12] == _PLAIN:
            pieces += (head, _TEXT[len(id)], id, value[:-16], _PLAIN_ACTIVE, value[-12:-6], _INSTANT, value[-6:], rest)
        else:
            pieces += (head, _TEXT[len(id)], id, value[:-16], _ACTIVE, _tail(value), rest)


def _tail(value: bytes) -> bytes:
    """Priority, order and created_at as in a record; the first two have their sign turned round."""
    priority = int.from_bytes(value[-16:-13], "big") - (1 << 23)
    order = int.from_bytes(value[-13:-6], "big") - (1 << 55)
    return pack((priority, order, int.from_bytes(value[-6:], "big")))[1:]


_NOTHING_YET: Final = (None,) * 5
"""finished_at, expires_at, reason, progress, result"""
