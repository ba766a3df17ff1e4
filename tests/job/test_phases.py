"""Phases, as the marks of a job say."""

from __future__ import annotations

from enum import Enum

import pytest
from msgspec.structs import replace

from ropeway.errors import InvalidName, InvalidOption
from ropeway.job.instants import moment_of
from ropeway.job.marks import FROM_PHASE, LONGEST_MARK, PHASE, PIPELINE, STEP, Mark, Marking, mark_name, scoped
from ropeway.job.options import StoredOptions, stored_options, with_phases
from ropeway.job.phases import (
    PhaseEnd,
    begin_at,
    encode_end,
    end_mark,
    failed,
    known_starts,
    marks_of_phase,
    overall,
    phases_of,
    progress_mark,
    start_mark,
)
from ropeway.job.record import JobRecord
from ropeway.job.states import State

NAMES = Mark(PIPELINE, '["download","process","upload"]')
DONE = (
    NAMES,
    Mark(start_mark("download"), "null", 10),
    Mark(end_mark("download"), encode_end(PhaseEnd("completed", {"rows": 2})), 20),
    Mark(start_mark("process"), "null", 20),
    Mark(progress_mark("process"), "25", 25),
)


def job(
    state: State = "active", *marks: Mark, options: str = "{}", progress: str | None = "42", result: str | None = None
) -> JobRecord:
    record = JobRecord("imports", "a", "import", "null", options, state, 0, 1, 5)
    finished_at = 30 if state in ("completed", "failed", "cancelled") else None
    return replace(record, marks=marks, finished_at=finished_at, reason="why", progress=progress, result=result)


@pytest.mark.parametrize(
    ("index", "progress", "count", "percent"),
    [(0, 50, 3, 17), (1, 25, 3, 42), (2, 80, 3, 93), (0, 0, 1, 0), (0, 100, 1, 100), (2, 100, 3, 100), (1, 0.4, 2, 50)],
)
def test_overall_progress(index: int, progress: float, count: int, percent: int):
    assert overall(index, progress, count) == percent


def test_phases_are_read_from_their_marks():
    first, second, third = phases_of(job("active", *DONE))

    assert (first.state, first.started_at, first.ended_at, first.result) == (
        "completed",
        moment_of(10),
        moment_of(20),
        {"rows": 2},
    )
    assert (second.state, second.progress, second.started_at, second.ended_at) == ("active", 25, moment_of(20), None)
    assert (third.state, third.progress, third.started_at) == ("pending", None, None)


@pytest.mark.parametrize(
    ("state", "states", "ended_at", "reason"),
    [
        ("cancelled", ["completed", "cancelled", "cancelled"], 30, None),
        ("failed", ["completed", "failed", "pending"], 30, "why"),
        ("waiting", ["completed", "active", "pending"], None, None),
    ],
)
def test_a_job_that_ended_otherwise_ends_its_phases(
    state: State, states: list[str], ended_at: int | None, reason: str | None
):
    phases = phases_of(job(state, *DONE))

    assert [phase.state for phase in phases] == states
    assert (phases[1].ended_at, phases[1].reason) == (moment_of(ended_at), reason)


def test_a_failed_phase_says_why():
    [mark] = failed("process", "no luck").marks

    phase = phases_of(job("cancelled", *DONE, mark))[1]

    assert (phase.state, phase.reason, phase.progress) == ("failed", "no luck", 25)


def test_phases_of_a_job_that_never_ran_are_those_it_was_added_for():
    options = with_phases('{"attempts":3}', ("a", "b"))

    assert stored_options(options) == StoredOptions(attempts=3, phases=("a", "b"))
    assert [(phase.name, phase.state) for phase in phases_of(job("cancelled", options=options))] == [
        ("a", "cancelled"),
        ("b", "cancelled"),
    ]
    assert [phase.name for phase in phases_of(job("waiting", NAMES, options=options))] == [
        "download",
        "process",
        "upload",
    ]
    assert phases_of(job("waiting")) == ()


def test_a_job_that_begins_again_at_a_phase_forgets_it_and_the_later_ones():
    inside = scoped(STEP, "upload", "page-1")
    steps = (Mark(scoped(STEP, "download", "page-1"), "{}"), Mark(inside, "{}"), Mark("signal:upload", "1"))

    forgets = (*marks_of_phase("process"), *marks_of_phase("upload"), inside)
    expected = Marking((Mark(FROM_PHASE, '"process"'),), forgets)
    assert begin_at(job("failed", *DONE, *steps), "process") == expected


@pytest.mark.parametrize(
    ("state", "left"),
    [("waiting", "pending"), ("active", "pending"), ("failed", "pending"), ("cancelled", "cancelled")],
)
def test_the_phases_from_there_on_have_not_begun_until_it_runs_again(state: State, left: str):
    names, end = replace(NAMES, at=10), Mark(end_mark("download"), encode_end(PhaseEnd("completed")), 20)

    first, second, third = phases_of(job(state, names, end, Mark(FROM_PHASE, '"process"', 30)))

    assert (first.state, first.started_at, first.ended_at) == ("completed", moment_of(10), moment_of(20))
    assert (second.state, second.started_at, second.ended_at) == (left, None, None)
    assert (third.state, third.started_at) == (left, None)


@pytest.mark.parametrize(
    ("state", "shown"), [("waiting", "pending"), ("delayed", "pending"), ("cancelled", "cancelled")]
)
def test_a_phase_has_not_begun_again_while_its_job_waits_after_a_retry_by_hand(state: State, shown: str):
    """A retry by hand takes the progress, which every phase has from its start."""
    second = phases_of(job(state, *DONE, progress=None))[1]

    assert (second.state, second.started_at, second.ended_at) == (shown, None, None)


def test_only_the_last_phase_completes_with_its_job():
    """Another handler completed the job, whose second phase had been interrupted."""
    first, second, third = phases_of(job("completed", *DONE, result='"of the job"'))

    assert (first.state, first.result) == ("completed", {"rows": 2})
    assert (second.state, second.result, second.started_at, second.ended_at) == ("pending", None, None, None)
    assert third.state == "pending"

    end = Mark(end_mark("process"), encode_end(PhaseEnd("completed")), 28)
    last = phases_of(job("completed", *DONE, end, result='"of the job"'))[2]
    assert (last.state, last.result, last.ended_at) == ("completed", "of the job", moment_of(30))


def test_when_phases_began_is_kept_for_a_pipeline_in_which_others_come_before_them():
    names, end = replace(NAMES, at=10), Mark(end_mark("download"), encode_end(PhaseEnd("completed")), 20)

    starts = known_starts(job("failed", names, end))

    assert starts == (Mark(start_mark("download"), "10"),)
    later = replace(names, value='["check","download"]', at=50)
    _, download = phases_of(job("failed", later, end, replace(starts[0], at=50)))
    assert (download.started_at, download.ended_at) == (moment_of(10), moment_of(20))


def test_a_phase_that_follows_another_began_when_that_ended():
    names = replace(NAMES, at=10)
    end = Mark(end_mark("download"), encode_end(PhaseEnd("completed")), 20)

    first, second, third = phases_of(job("active", names, end))

    assert (first.started_at, second.started_at, second.state) == (moment_of(10), moment_of(20), "active")
    assert (third.state, third.started_at) == ("pending", None)


def test_a_phase_to_begin_at_is_one_of_the_job():
    with pytest.raises(InvalidOption, match="began with the phases download, process, upload"):
        begin_at(job("failed", *DONE), "convert")
    with pytest.raises(InvalidOption, match="no pipeline has run it"):
        begin_at(job("failed"), "convert")


@pytest.mark.parametrize("name", ["", "a\nb", "\x00", "x" * LONGEST_MARK, 5, None, b"a"])
def test_names_of_marks_are_short_and_printable(name: object):
    with pytest.raises(InvalidName, match="phase name"):
        mark_name(name, PHASE)


def test_the_longest_name_fits_every_mark_of_a_phase():
    name = mark_name("x" * (LONGEST_MARK - len(PHASE) - 10), PHASE)

    assert max(map(len, marks_of_phase(name))) <= LONGEST_MARK


def test_a_name_of_an_enumeration_is_its_value():
    class Signal(str, Enum):  # noqa: UP042 - the older kind, whose str() is not its value
        PAID = "paid"

    assert mark_name(Signal.PAID, PHASE) == "paid"
    assert type(mark_name(Signal.PAID, PHASE)) is str
