"""Assertions about the jobs that were added to a queue.

They only read what a `FakeStore` has recorded, so they work in tests with and without an event loop.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from ..client.jobtype import JobType
from ..client.queue import Queue
from ..job.numbers import whole
from .adds import AddedJob
from .expected import Expected, Target, expected_of
from .store import fake_store

MOST_SHOWN: Final = 20


def added(target: Target, name: str | JobType[Any, Any] | None = None) -> list[AddedJob]:
    """Every job that was added to a queue, in order, including finished and removed ones.

    For a task, a name or a job type, only its jobs.
    """
    expected = expected_of(target, name)
    return [job for job in _all_added(expected.queue) if expected.name in (None, job.name)]


def assert_added(
    target: Target,
    name: str | JobType[Any, Any] | None = None,
    *,
    data: Any = msgspec.UNSET,
    count: int | None = None,
    **options: Any,
) -> AddedJob:
    """Fails unless such a job was added (`count` times, if given); returns the first match.

    `data` is matched partially: a mapping matches data that has more keys, a type its instances, a function the values
    for which it returns True. Options are written as in `queue.add`, and may be functions too. If `name` is a job type,
    `data` is of that type, or a mapping of some of its fields.

    For a task, keywords are its arguments, in their Python types: `assert_added(remind, at=datetime(...))`. Options are
    given by `using`: `assert_added(remind.using(delay=60), to="Ann")`. Arguments named `data`, `count`, `name` or
    `target` are given in a mapping, as `data`.
    """
    expected = expected_of(target, name, data, options)
    wanted = None if count is None else whole("count", count, 1)
    jobs = _all_added(expected.queue)
    found = [job for job in jobs if not any(expected.differences(job))]
    if not found or wanted not in (None, len(found)):
        times = "" if wanted is None else f"{wanted} times "
        raise AssertionError(_complaint(f"expected {times}{expected}; found {len(found)}", expected, jobs, found))
    return found[0]


def assert_not_added(
    target: Target, name: str | JobType[Any, Any] | None = None, *, data: Any = msgspec.UNSET, **options: Any
) -> None:
    """Fails if such a job was added; without a name, if any job was."""
    expected = expected_of(target, name, data, options)
    found = [job for job in _all_added(expected.queue) if not any(expected.differences(job))]
    if found:
        raise AssertionError(f"expected nothing to add {expected}; found {len(found)}{_listed('these', found)}")


def _all_added(queue: Queue) -> list[AddedJob]:
    return [job for job in fake_store(queue).jobs_added if job.queue == queue.name]


def _complaint(problem: str, expected: Expected, jobs: list[AddedJob], found: list[AddedJob]) -> str:
    if not jobs:
        return f"{problem}\nnothing was added to {expected.queue.name!r}"
    if found:
        return problem + _listed("these", found)
    nearest = min(jobs, key=lambda job: (expected.name not in (None, job.name), len([*expected.differences(job)])))
    differing = "".join(f"\n    {difference}" for difference in expected.differences(nearest))
    return f"{problem}\nthe nearest is\n  {nearest}{differing}{_listed('all that was added', jobs)}"


def _listed(title: str, jobs: list[AddedJob]) -> str:
    more = f"\n  and {len(jobs) - MOST_SHOWN} more" if len(jobs) > MOST_SHOWN else ""
    return f"\n{title}:" + "".join(f"\n  {job}" for job in jobs[:MOST_SHOWN]) + more
