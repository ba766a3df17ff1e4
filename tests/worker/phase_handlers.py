"""Phases and handlers with steps that tests run in processes: a process finds them by the name of this module."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ropeway import Flow, ProcessJob, ProcessPhaseContext, Unrecoverable


@dataclass
class Row:
    id: int
    name: str


def process(job: ProcessJob, ctx: ProcessPhaseContext) -> Any:
    ctx.progress(25)
    return [os.getpid(), ctx.name, ctx.overall, ctx.phase_result("download"), ctx.phase_results(), ctx.last_progress]


def crash_once(job: ProcessJob, ctx: ProcessPhaseContext) -> Any:
    if ctx.last_progress is None:
        ctx.progress(50)
        os.abort()
    return ctx.last_progress


def give_up(job: ProcessJob, ctx: ProcessPhaseContext) -> None:
    raise Unrecoverable("no luck")


def note(path: str, text: str) -> list[Row]:
    with Path(path).open("a") as notes:
        notes.write(text + "\n")
    return [Row(1, text)]


def note_and_fail_once(job: ProcessJob, ctx: ProcessPhaseContext) -> None:
    job.step("note", note, job.data, "once")
    if ctx.last_progress is None:
        ctx.progress(50)
        raise RuntimeError("try again")


def steps(job: ProcessJob) -> Any:
    """Every call of steps, once in effect however often the handler begins again."""
    [row] = job.step("first", note, job.data, "first")
    assert isinstance(row, Row)
    job.sleep(0.01)
    [other] = job.step("second", note, job.data, text="second")
    paid = job.wait_for("payment")
    children = job.gather(Flow("echo", "a"), Flow("echo", "b"))
    if job.attempt == 1:
        raise RuntimeError("begin again")
    return [row.name, other.name, paid, children]


def wait_in_vain(job: ProcessJob) -> str:
    try:
        job.wait_for("payment", timeout=0.01)
    except TimeoutError as late:
        return str(late)
    return "paid"
