"""What goes to scripts and comes back: MessagePack, and answers of two letters each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from ...job.instants import LAST_INSTANT, Instant
from ...job.options import StoredOptions
from ...job.record import JobRecord
from ...job.states import State
from ...store.values import Answer, Claimed, ClaimRequest

pack: Final[Callable[[Any], bytes]] = msgspec.msgpack.Encoder().encode
as_json: Final = msgspec.json.Encoder().encode
records: Final[Callable[[bytes], list[JobRecord]]] = msgspec.msgpack.Decoder(list[JobRecord]).decode
records_or_none: Final[Callable[[bytes], list[JobRecord | None]]] = msgspec.msgpack.Decoder(
    list[JobRecord | None]
).decode

_STATES: Final[dict[str, State | None]] = {
    "w": "waiting",
    "d": "delayed",
    "a": "active",
    "c": "completed",
    "f": "failed",
    "x": "cancelled",
    "-": None,
}
_VERDICTS: Final = {"d": "done", "l": "lost", "m": "missing", "r": "refused"}
_ANSWERS: Final[dict[bytes, Answer]] = {
    f"{letter}{state}".encode(): Answer(verdict, name)  # type: ignore[arg-type]  # the letters are those of verdicts
    for letter, verdict in _VERDICTS.items()
    for state, name in _STATES.items()
}

_NO_OPTIONS: Final = StoredOptions()
DEFAULTS: Final = (
    _NO_OPTIONS.attempts,
    _NO_OPTIONS.stack_traces,
    False if _NO_OPTIONS.keep_failed.age is None else _NO_OPTIONS.keep_failed.age,
    False if _NO_OPTIONS.keep_failed.count is None else _NO_OPTIONS.keep_failed.count,
)
"""What holds for jobs that say nothing about it; scripts that end a job without its worker need it."""


def answers_of(letters: bytes) -> list[Answer]:
    return [_ANSWERS[letters[at : at + 2]] for at in range(0, len(letters), 2)]


def given(now: Instant | None) -> Instant | bool:
    """Scripts take false for `now` where the server's clock decides."""
    return False if now is None else now


def request_of(request: ClaimRequest) -> tuple[Any, ...]:
    names: Sequence[str] | bool = False if request.names is None else request.names
    worker = as_json(request.worker).decode()
    # Nobody waits longer than the end of all instants.
    lock = min(request.lock, LAST_INSTANT)
    return request.token, request.worker, worker, request.limit, lock, names, request.repeat


def claimed_of(answer: Sequence[Any]) -> Claimed:
    jobs, now, again_at = answer
    return Claimed(records(jobs), now, again_at)
