"""Decodes the row of a queue: its counters and settings."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

import msgspec

from ...job.stages import Stages, stages_in
from ...job.states import STATES
from ...store.values import Counts, Settings


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
    deadline: int = 0
    schedules: int = 0
    headed_length: int = 0

    @property
    def counts(self) -> Counts:
        return {state: getattr(self, state.replace("-", "_")) for state in STATES}

    @property
    def settings(self) -> Settings:
        return Settings(bool(self.is_paused), self.paused_names, self.max_active or None)

    @property
    def has_stages(self) -> bool:
        return self.is_configured == _WITH_STAGES

    @property
    def exists(self) -> bool:
        return bool(self.is_configured or self.schedules) or any(self.counts.values())


def stages_of(fields: Sequence[bytes]) -> Stages | None:
    """Decodes fields and values of the hash `stages`, in turn."""
    if not fields:
        return None
    found = {name.decode(): int(value) for name, value in zip(fields[::2], fields[1::2], strict=True)}
    return Stages(found.get("stale_after"), found.get("delete_after"), found["stale_until"], stages_in(found))


_WITH_STAGES: Final = 2
_NO_ROW: Final = Row()
_FORMAT: Final = 3
_numbers: Final = struct.Struct("<24d")
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
