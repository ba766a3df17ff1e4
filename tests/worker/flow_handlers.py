"""Handlers of flows that tests run in processes: a process finds them by the name of this module."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from ropeway import Backoff, Call, Flow, InvalidInput, Keep, ProcessJob, Queue, RopewayError, result_of, results_of

queue = Queue("crunching", "memory://", attempts=2)


@queue.task
async def fetch(source: str) -> int:
    return len(source)


@queue.task(run_in="process")
def double(number: int = result_of(fetch)) -> int:
    return 2 * number


@queue.task(run_in="process")
def total(job: ProcessJob, numbers: list[int] = results_of(fetch)) -> Any:
    job.add_children([fetch.using(id="late", backoff=1).call("late")])
    job.wait_for_children()
    return [numbers, job.children_results()["late"]]


def read_children(job: ProcessJob) -> Any:
    return [job.children_results(), job.children_failures(), job.children_counts()]


def fan_out(job: ProcessJob) -> Any:
    """Adds two children that share a third, and waits for them."""
    shared = Flow("fetch", "shared", id="shared", queue="etl", delay=timedelta(milliseconds=1))
    flows = [
        Flow("fetch", "left", id="left", children=[shared], tags=("a", "b")),
        Flow("fetch", "right", id="right", children=[shared], remove_on_fail=Keep(age="1 hour"), on_failure="ignore"),
    ]
    if not job.children_counts()["completed"]:
        assert job.add_children(flows, on_child_failure="wait") == ["left", "right"]
    job.wait_for_children()
    return [job.attempt, job.record.attempts_started, job.children_results()]


def add_every_option(job: ProcessJob) -> Any:
    at = datetime(2040, 1, 1, tzinfo=UTC)
    late = Flow("late", id="late", delay=at, priority=2, lifo=True, timeout=None, backoff=Backoff.exponential(1))
    return job.add_children([Call("before").after(Call("early", {"a": [1]})), late])


def add_wrongly(job: ProcessJob) -> Any:
    circle = Flow("circle")
    circle.children.append(circle)
    wrong: list[Any] = [
        [circle],
        [Flow("data", object())],
        [Flow("taken", id="taken")],
        [Flow("option", attempts=0)],
        ["fetch"],
        "fetch",
    ]
    said = []
    for flows in wrong:
        try:
            job.add_children(flows)
        except (InvalidInput, RopewayError) as error:
            said.append(str(error))
    return said
