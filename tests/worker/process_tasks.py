"""Tasks that tests run in processes: a process finds them by the name of this module."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import date, timedelta

from ropeway import ProcessJob, Queue

queue = Queue("crunching", "memory://")


@dataclass
class Span:
    first: date
    days: int = 1


@queue.task(run_in="process")
def last_day(span: Span, *, extra: timedelta = timedelta(0)) -> dict[date, Span]:
    return {span.first + timedelta(days=span.days) + extra: span}


@queue.task(run_in="process")
async def with_job(job: ProcessJob, number: int) -> list[int]:
    job.progress(number)
    return [job.attempt, number, os.getpid()]


@queue.task(run_in="process")
def answers_wrongly() -> list[int]:
    return [object()]  # type: ignore[list-item]  # the point


def undecorated(number: int) -> int:
    return number


elsewhere = Queue("elsewhere", "memory://").task(run_in="process")(undecorated)
