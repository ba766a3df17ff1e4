"""Schedules, and the jobs that their ticks make, as parameters of `sql/write_schedules.sql`, and its answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...store.values import ScheduleWrite, ScheduleWritten, StoredSchedule
from .adding import answers_of, arguments_of
from .encoding import as_json
from .parameters import Parameter, numbers, texts


def parameters_of(writes: Sequence[ScheduleWrite]) -> tuple[Parameter, ...]:
    return (
        texts([write.id for write in writes]),
        texts([write.value for write in writes]),
        numbers([write.next_at for write in writes]),
        numbers([write.expect for write in writes]),
        texts([_adds(write) for write in writes]),
        texts([as_json(write.removes).decode() if write.removes else None for write in writes]),
    )


def _adds(write: ScheduleWrite) -> str | None:
    if not write.adds:
        return None
    return as_json(arguments_of([[job] for job in write.adds])._asdict()).decode()


def written_of(writes: Sequence[ScheduleWrite], answer: Sequence[Any]) -> list[ScheduleWritten]:
    """The arrays that `sql/write_schedules.sql` returns."""
    return [_written(write, *fields) for write, *fields in zip(writes, *answer, strict=True)]


def _written(
    write: ScheduleWrite, is_done: bool, value: str | None, next_at: int | None, version: int | None, added: str | None
) -> ScheduleWritten:
    schedule = None if value is None else StoredSchedule(write.id, value, next_at, version or 0)
    bundles = [[job] for job in write.adds]
    answers = [] if added is None else [answer for [answer] in answers_of(bundles, added)]
    return ScheduleWritten("done" if is_done else "lost", schedule, answers)


def schedules_of(columns: Sequence[Any]) -> list[StoredSchedule]:
    """Schedules in an array for each field."""
    return [StoredSchedule(*fields) for fields in zip(*columns, strict=True)]
