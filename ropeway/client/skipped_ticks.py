"""Noting ticks that made no job, because one of an earlier tick was not final."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from ..job.schedules import ScheduleState
from ..store.values import Added, ScheduleWrite, ScheduleWritten

_encode: Final = msgspec.json.Encoder().encode


def correction(state: ScheduleState, answer: ScheduleWritten) -> ScheduleWrite | None:
    """The history is written before the answer is known: ticks that made no job are noted in a second write."""
    holders = [_holder(added) for added in answer.added]
    if answer.schedule is None or not any(holders):
        return None
    written = answer.schedule
    value = _encode(state.skipping(holders)).decode()
    return ScheduleWrite(written.id, value, written.next_at, written.version)


def corrections(states: Sequence[ScheduleState | None], answers: Sequence[ScheduleWritten]) -> list[ScheduleWrite]:
    """The second writes for several schedules; a state is None where there is nothing to correct."""
    found = [correction(state, answer) for state, answer in zip(states, answers, strict=True) if state is not None]
    return [write for write in found if write is not None]


def _holder(added: Added) -> str | None:
    return added.id if added.verdict == "deduplicated" else None
