"""Handlers with steps that tests run in processes: a process finds them by the name of this module."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from ropeway import Backoff, Flow, ProcessJob, Queue, RopewayError, StepFailed, Unrecoverable


def fail_and_note(path: str, error: str) -> None:
    with Path(path).open("a") as notes:
        notes.write("tried\n")
    raise RuntimeError(error)


def try_a_step(job: ProcessJob) -> None:
    """The data are where to note each try, and the text of the error."""
    job.step("fails", fail_and_note, *job.data, attempts=3)


def try_a_step_each_hour(job: ProcessJob) -> None:
    """The data is where to note each try."""
    job.step("fails", fail_and_note, job.data, "broken", attempts=3, backoff=Backoff.exponential("1 hour"))


def a_number(value: Any) -> int:
    return value  # type: ignore[no-any-return]  # the point


def as_text(value: Any) -> str:
    return value  # type: ignore[no-any-return]  # the point


def other_type(job: ProcessJob) -> Any:
    """Its step has another annotation in the second attempt."""
    function: Any = a_number if job.attempt == 1 else as_text
    job.step("one", function, 5)
    raise RuntimeError("begin again")


@dataclass
class Point:
    x: int
    y: int = 0

    async def __call__(self) -> None:
        """That its objects are called by `await` says nothing of how they are made."""


def make_a_point(job: Any) -> int:
    """Its step is a class."""
    point = job.step("point", Point, 3, y=4)
    if job.attempt == 1:
        raise RuntimeError("begin again")
    assert isinstance(point, Point)
    return point.x * point.y


def wait_in_vain(job: ProcessJob) -> Any:
    return job.wait_for("paid", timeout=0.01)


def wait_and_convert(job: ProcessJob) -> Any:
    try:
        return job.wait_for("paid", timeout=0.01)
    except TimeoutError as late:
        raise ValueError("nobody paid") from late


async def sleep_in_a_group(job: ProcessJob) -> int:
    async def nap() -> None:
        job.sleep(0.01)

    async with asyncio.TaskGroup() as group:
        group.create_task(nap())
    return job.record.attempts_started


queue = Queue("letters")


@dataclass
class Day:
    day: date


@queue.task
async def next_day(day: date) -> Day:
    return Day(day + timedelta(days=1))


def gather_days(job: ProcessJob) -> Any:
    [found] = job.gather(next_day.call(date(2024, 2, 28)))
    return [type(found).__name__, found.day.isoformat()]


def refusals(job: ProcessJob) -> Any:
    """Calls that the worker refuses."""
    seen: list[Any] = []
    calls: list[Any] = [
        lambda: job.sleep(1, name=""),
        lambda: job.wait_for(""),
        lambda: job.step("large", "x".__mul__, 2_000_000),
        lambda: job.add_children([Flow("echo", id=job.id)]),
    ]
    for call in calls:
        try:
            call()
        except RopewayError as error:
            seen.append([type(error).__name__, getattr(error, "what", None) or getattr(error, "job_id", None)])
    return seen


def hide_a_sleep(job: Any) -> Any:
    """For threads and processes. The data are a file that says when the step ran."""
    with suppress(BaseException):
        job.sleep(0.02)
    return job.step("after", append, job.data, f"attempt {job.record.attempts_started}")


def append(path: str, text: str) -> str:
    with Path(path).open("a") as notes:
        notes.write(text + "\n")
    return text


def hide_the_end_of_a_sleep(job: ProcessJob, _: object) -> Any:
    with suppress(BaseException):
        job.sleep(0.02)
    return job.record.attempts_started


def forget_the_name(job: Any) -> Any:
    return job.step(a_number, "page")


def take_long(job: Any) -> None:
    job.step("charge", time.sleep, 0.03, timeout=0.01)


def wait_for_another(job: Any) -> None:
    job.wait_for("address")
    job.wait_for("paymnet", timeout=0.01)


def wait_for_another_at_once(job: Any) -> None:
    job.wait_for("address")
    job.wait_for("paymnet", timeout=0)


def hide_a_gather(job: Any) -> Any:
    with suppress(BaseException):
        job.gather(Flow("echo", 1, delay=0.05))
    job.sleep(0.01)
    return job.record.attempts_started


def hide_a_sleep_before_children(job: Any) -> Any:
    """The data are a file that says when the handler went on."""
    with suppress(BaseException):
        job.sleep(0.02)
    job.wait_for_children()
    return append(job.data, f"attempt {job.record.attempts_started}")


def gather_a_list(job: Any) -> Any:
    return job.gather([Flow("echo")])


def gather_a_coroutine(job: Any) -> Any:
    return job.gather(asyncio.sleep(5))


def sleep_to_a_moment(job: Any) -> bool:
    moment = datetime.fromisoformat(job.data)
    job.sleep(moment)
    return datetime.now(moment.tzinfo) >= moment


def sleep_until(job: Any) -> str:
    moment = datetime.fromisoformat(job.data)
    job.sleep(moment - datetime.now(UTC))
    try:
        job.wait_for("paid", timeout=moment - datetime.now(UTC))
    except TimeoutError:
        return "nobody paid"
    return "paid"


def decline_once(path: str) -> str:
    notes = Path(path)
    is_first = not notes.exists()
    with notes.open("a") as file:
        file.write("tried\n")
    if is_first:
        raise Unrecoverable("no money")
    return "paid"


def charge(job: ProcessJob) -> str:
    """The data are where to note each try."""
    return job.step("charge", decline_once, job.data)


def charge_in_vain(job: ProcessJob) -> str:
    try:
        found = charge(job)
    except StepFailed as failed:
        found = failed.reason
    job.sleep(0.01)
    return found
