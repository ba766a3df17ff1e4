"""Phases of a job, as its marks say: the state, progress, times and result of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final, Literal, TypeAlias

import msgspec

from ..errors import InvalidOption
from ..showing import shown
from .codec import Json, JsonText, decode
from .instants import Instant, instant_of, moment_of
from .marks import FROM_PHASE, PHASE, PIPELINE, Mark, Marking, Notice, phase_and_name, scoped_kind
from .record import JobRecord

PhaseState: TypeAlias = Literal["pending", "active", "completed", "failed", "cancelled"]

_END: Final = ":end"

_encode: Final = msgspec.json.Encoder().encode


class PhaseEnd(msgspec.Struct, frozen=True, omit_defaults=True):
    """The value of the mark that a phase leaves at its end."""

    state: Literal["completed", "failed"]
    result: Json = None
    reason: str | None = None


class _StoredEnd(msgspec.Struct, frozen=True):
    """A `PhaseEnd` whose result stays encoded."""

    state: Literal["completed", "failed"]
    result: msgspec.Raw = msgspec.Raw(b"null")


_read_end: Final = msgspec.json.Decoder(_StoredEnd).decode


class PhaseStatus(msgspec.Struct, frozen=True):
    """A phase of a job at the moment of reading."""

    name: str
    state: PhaseState
    progress: Json = None
    """The last value that it reported."""
    started_at: datetime | None = None
    ended_at: datetime | None = None
    result: Json = None
    reason: str | None = None


def overall(index: int, progress: float, count: int) -> int:
    """The progress of the whole job, in percent."""
    return round((index + progress / 100) / count * 100)


def start_mark(name: str) -> str:
    """The mark that says when a phase began, if no other mark does.

    The first phase began when the names of the pipeline were stored, and one that follows another when that ended: each
    is one write, without this mark. An attempt that begins at a later phase writes it, unless it goes on with a phase
    that began before, as after a sleep. The value is null, or the instant at which the phase began if it was written
    later.
    """
    return f"{PHASE}{name}:start"


def progress_mark(name: str) -> str:
    return f"{PHASE}{name}:progress"


def end_mark(name: str) -> str:
    return f"{PHASE}{name}{_END}"


def marks_of_phase(name: str) -> tuple[str, ...]:
    return start_mark(name), progress_mark(name), end_mark(name)


def come_further(before: Iterable[Mark], written: Iterable[Mark]) -> bool:
    """True if marks say that a handler did what it had not done before: a step, sleep, wait, gather or whole phase."""
    known = {mark.name for mark in before}
    return any(
        mark.name not in known and (scoped_kind(mark.name) is not None or mark.name.endswith(_END)) for mark in written
    )


def encode_end(end: PhaseEnd) -> JsonText:
    return _encode(end).decode()


def encode_completed(result: JsonText | None) -> JsonText:
    """The end of a phase with this result, which is encoded already."""
    return '{"state":"completed"}' if result is None else f'{{"state":"completed","result":{result}}}'


def result_text(end: JsonText) -> JsonText | None:
    """The result of a phase, still encoded, by the mark that it left at its end; None if the phase failed."""
    stored = _read_end(end)
    return str(stored.result, "utf-8") if stored.state == "completed" else None


def started(name: str, index: int, count: int) -> Notice:
    return Notice("phase-started", _encode({"phase": name, "number": index + 1, "of": count}).decode())


def completed(name: str, index: int, count: int) -> Notice:
    return Notice("phase-completed", _encode({"phase": name, "number": index + 1, "of": count}).decode())


def failed(name: str, reason: str) -> Marking:
    """Marks of a phase in which an attempt of its job failed."""
    return Marking((Mark(end_mark(name), encode_end(PhaseEnd("failed", reason=reason))),))


def phase_names(record: JobRecord) -> list[str]:
    """The phases of the pipeline that ran the job; before that, of the one that it was added for, if that is known."""
    stored = next((mark.value for mark in record.marks if mark.name == PIPELINE), None)
    if stored is None:
        return list(record.read_options().phases or ())
    return msgspec.json.decode(stored, type=list[str])


def is_completed_pipeline(record: JobRecord) -> bool:
    """True if a pipeline ran the job, and it completed."""
    if record.state != "completed" or not record.marks:
        return False
    names = {mark.name for mark in record.marks}
    return PIPELINE in names and FROM_PHASE not in names


def phases_of(record: JobRecord) -> tuple[PhaseStatus, ...]:
    """Its phases in order. Those that a cancellation interrupted or kept from starting are `cancelled`.

    One that was active when its job failed without a worker, by stalls, has failed with it. The last one completes with
    its job, and has no mark of that. One that did not end is pending again if its job completed without it, or was
    retried by hand and has not begun since.
    """
    marks = {mark.name: mark for mark in record.marks}
    phases: list[PhaseStatus] = []
    names = phase_names(record)
    before = marks.get(PIPELINE)
    for number, name in enumerate(names, 1):
        phases.append(_status(name, marks, record, before, is_last=number == len(names)))
        before = marks.get(end_mark(name)) if before and phases[-1].state == "completed" else None
    return tuple(phases)


def _status(name: str, marks: dict[str, Mark], job: JobRecord, before: Mark | None, *, is_last: bool) -> PhaseStatus:
    start, progress, end = (marks.get(mark) for mark in marks_of_phase(name))
    started_at = _began_at(start or before)
    ended = None if end is None else msgspec.json.decode(end.value, type=PhaseEnd)
    if ended is None and (FROM_PHASE in marks or _waits_for_another_run(job)):
        started_at = None
    state: PhaseState = "pending" if started_at is None else "active"
    reason, ended_at = None, None
    if ended is not None and end is not None:
        state, reason, ended_at = ended.state, ended.reason, end.at
    elif job.state == "cancelled":
        state, ended_at = "cancelled", None if started_at is None else job.finished_at
    elif job.state == "failed" and started_at is not None:
        state, reason, ended_at = "failed", job.reason, job.finished_at
    elif job.state == "completed" and started_at is not None:
        if is_last:
            state, ended_at = "completed", job.finished_at
            ended = PhaseEnd("completed", None if job.result is None else msgspec.json.decode(job.result))
        else:
            state, started_at = "pending", None
    return PhaseStatus(
        name,
        state,
        None if progress is None else msgspec.json.decode(progress.value),
        moment_of(started_at),
        moment_of(ended_at),
        None if ended is None else ended.result,
        reason,
    )


def _began_at(start: Mark | None) -> Instant | None:
    if start is None:
        return None
    return int(start.value) if start.value.isdecimal() else start.at


def _waits_for_another_run(job: JobRecord) -> bool:
    """True if the job was retried by hand, and has not begun again.

    The retry cleared its progress, which the start of every phase sets.
    """
    return job.progress is None and job.state not in ("active", "completed", "failed")


def known_starts(record: JobRecord) -> tuple[Mark, ...]:
    """Start marks of completed phases that have none, for a pipeline in which others come before them."""
    known = {mark.name for mark in record.marks}
    return tuple(
        Mark(start_mark(phase.name), str(instant_of(phase.started_at)))
        for phase in phases_of(record)
        if phase.state == "completed" and phase.started_at is not None and start_mark(phase.name) not in known
    )


def begin_at(record: JobRecord, name: str) -> Marking:
    """Lets a job begin again at a phase, whichever pipeline runs it then. The phases before it stay."""
    names = phase_names(record)
    if name not in names:
        known = f"the job began with the phases {', '.join(names)}" if names else "no pipeline has run it"
        raise InvalidOption("from_phase", f"cannot be {shown(name)}: {known}")
    index = names.index(name)
    if (
        left := next((phase.name for phase in phases_of(record)[:index] if phase.state != "completed"), None)
    ) is not None:
        raise InvalidOption(
            "from_phase", f"cannot be {shown(name)}: {shown(left)} comes before it, and has not completed"
        )
    later = names[index:]
    inside = [mark.name for mark in record.marks if _phase_inside(mark.name) in later]
    begins = Mark(FROM_PHASE, _encode(name).decode())
    return Marking((begins,), (*(mark for phase in later for mark in marks_of_phase(phase)), *inside))


def _phase_inside(mark: str) -> str | None:
    """The phase in which a step, sleep, wait or gather left this mark."""
    kind = scoped_kind(mark)
    return None if kind is None else phase_and_name(mark, kind)[0]


def result_of_phase(results: Mapping[str, JsonText], name: str, before: str) -> Json:
    """The result of a phase before another one: a copy for each caller."""
    if name not in results:
        known = ", ".join(results) or "none"
        raise InvalidOption("phase", f"{shown(name)} has no result yet; those before {before!r}: {known}")
    return decode(results[name])


def results_of_phases(results: Mapping[str, JsonText]) -> dict[str, Json]:
    return {name: decode(text) for name, text in results.items()}
