"""Packs and reads schedules."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any, Final

from ...errors import InvalidOption
from ...job.instants import Instant
from ...store.commands import WriteSchedules
from ...store.values import ScheduleWrite, ScheduleWritten, StoredSchedule
from .adding import JobPacker, answers_of
from .encoding import given, pack
from .ids import all_shortened

_HEAD: Final = Struct(">Iq")
"""Version, and next_at or -1; the value follows."""


def packed_writes(command: WriteSchedules, now: Instant | None) -> tuple[bytes, bytes]:
    """The arguments of `write_schedules`."""
    packer = JobPacker(command.queue)
    writes = [_packed(packer, write) for write in command.writes]
    if len(packer.queues) > 1:
        raise InvalidOption("adds", f"are for {packer.queues[1]!r}: jobs of a schedule go into its queue")
    return pack((given(now), packer.names, packer.rare, writes)), packer.texts


def _packed(packer: JobPacker, write: ScheduleWrite) -> tuple[Any, ...]:
    ids = all_shortened([job.id for job in write.adds])
    jobs = [packer.job(job, id) for job, id in zip(write.adds, ids, strict=True)]
    value, next_at, expect = (False if given is None else given for given in (write.value, write.next_at, write.expect))
    return write.id, value, next_at, expect, jobs, all_shortened(write.removes)


def written_of(writes: Sequence[ScheduleWrite], answers: Sequence[list[Any]]) -> list[ScheduleWritten]:
    return [_written(write, *answer) for write, answer in zip(writes, answers, strict=True)]


def _written(write: ScheduleWrite, done: int, stored: bytes, codes: bytes, holders: list[bytes]) -> ScheduleWritten:
    schedule = _schedule(write.id, stored) if stored else None
    if not done:
        return ScheduleWritten("lost", schedule)
    added = answers_of([[job] for job in write.adds], codes.decode(), holders)
    return ScheduleWritten("done", schedule, [answer for [answer] in added])


def schedules_of(found: Sequence[bytes]) -> list[StoredSchedule]:
    """Reads ids and values, in turn."""
    return [_schedule(found[at].decode(), found[at + 1]) for at in range(0, len(found), 2)]


def _schedule(id: str, stored: bytes) -> StoredSchedule:
    version, next_at = _HEAD.unpack_from(stored)
    return StoredSchedule(id, stored[_HEAD.size :].decode(), None if next_at < 0 else next_at, version)
