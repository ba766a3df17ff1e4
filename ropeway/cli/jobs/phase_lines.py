"""Phases, steps and failed attempts of a job as timelines with durations."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

import click

from ...client.snapshot import Snapshot
from ...job.instants import moment_of
from ...job.phases import PhaseStatus
from ...job.steps import StepStatus
from ...store.values import History
from ...worker.timing import in_words
from ..cells import cut
from ..escaping import one_line
from ..tables import STATE_COLOURS
from ..text import clock_time, shown

_STEPS: Final = 50
_VALUE: Final = 60
"""Most characters of a result or reason."""


def phase_lines(job: Snapshot, now: datetime) -> Iterator[str]:
    """A line for each phase: when it began, how long it took, its state, name, progress, and result or reason."""
    if not job.phases:
        return
    width = max(len(phase.name) for phase in job.phases)
    yield f"\nPhases ({sum(phase.state == 'completed' for phase in job.phases)} of {len(job.phases)} completed)"
    for phase in job.phases:
        state = click.style(f"{phase.state:<9}", fg=STATE_COLOURS.get(phase.state))
        has_progress = phase.progress is not None and phase.state != "completed"
        progress = f"{phase.progress:g} %" if has_progress else ""
        name = one_line(phase.name).ljust(width)
        when = f"{_time(phase.started_at):<23}  {_length(phase, now):>10}"
        yield f"  {when}  {state}  {name}  {progress:>5}  {_said(phase)}".rstrip()


def step_lines(job: Snapshot, now: datetime) -> Iterator[str]:
    """A line for each of the newest steps, sleeps, waits and gathers: when it began, its length, kind, name, result."""
    if not job.steps:
        return
    shown_steps = job.steps[-_STEPS:]
    names = [one_line(step.name if step.phase is None else f"{step.phase}: {step.name}") for step in shown_steps]
    width = max(map(len, names))
    has_kinds = any(step.kind != "step" for step in shown_steps)
    yield f"\nSteps ({len(job.steps):,})"
    if len(job.steps) > _STEPS:
        yield f"  … {len(job.steps) - _STEPS:,} earlier"
    moment = job.finished_at or now
    for step, name in zip(shown_steps, names, strict=True):
        length = step.length_at(moment)
        when = f"{_time(step.started_at)}  {'' if length is None else in_words(length):>10}"
        kind = f"{step.kind:<6}  " if has_kinds else ""
        lasts = step.until is not None and step.lasts_at(moment) and job.finished_at is None
        said = f"until {clock_time(step.until)}" if lasts else _said(step)
        yield f"  {when}  {kind}{name.ljust(width)}  {said}".rstrip()


def attempt_lines(history: History) -> Iterator[str]:
    """A line for each failed attempt that is kept: when it began, how long it took, its number and reason."""
    if not history.failures:
        return
    yield f"\nFailed attempts ({len(history.failures)})"
    for failed in history.failures:
        began = failed.at if failed.started_at is None else failed.started_at
        length = "" if failed.started_at is None else in_words((failed.at - began) / 1000)
        yield f"  {_time(moment_of(began))}  {length:>10}  {failed.attempt}  {cut(one_line(failed.reason), _VALUE)}"


def _time(moment: datetime | None) -> str:
    return "" if moment is None else moment.astimezone().strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


def _length(phase: PhaseStatus, now: datetime) -> str:
    if phase.started_at is None:
        return ""
    ended = now if phase.state == "active" else phase.ended_at
    return "" if ended is None else in_words(max(0.0, (ended - phase.started_at).total_seconds()))


def _said(part: PhaseStatus | StepStatus) -> str:
    if part.reason is not None:
        return cut(one_line(part.reason), _VALUE)
    return "" if part.result is None else cut(shown(part.result), _VALUE)
