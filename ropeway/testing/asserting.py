"""What was added to a queue, and whether that is what a test expects.

These functions only look at what a `FakeStore` remembers: they are the same in tests with and without an event loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, Protocol, TypeAlias, runtime_checkable

import msgspec

from ..client.queue import Queue
from ..errors import InvalidOption
from ..job.names import job_name
from ..job.numbers import whole
from .adds import AddedJob
from .matching import differences
from .store import fake_store

MOST_SHOWN: Final = 20


@runtime_checkable
class Task(Protocol):
    """A handler that is registered on a queue; its arguments are its jobs' data, by name."""

    @property
    def queue(self) -> Queue: ...
    @property
    def name(self) -> str: ...


Target: TypeAlias = Queue | Task


def added(target: Target, name: str | None = None) -> list[AddedJob]:
    """Every job that was added to a queue, in order, also those that are finished or removed; or those of one name."""
    queue, name = (target, name) if isinstance(target, Queue) else (target.queue, target.name)
    return [job for job in fake_store(queue).jobs_added if job.queue == queue.name and name in (None, job.name)]


def assert_added(
    target: Target, name: str | None = None, *, data: Any = msgspec.UNSET, count: int | None = None, **options: Any
) -> AddedJob:
    """Fails unless such a job was added, `count` times if that is said; answers the first of them.

    `data` says what must be in it: a mapping matches data that has more keys, a type its instances, a function what it
    answers True for. Options are written as in `queue.add`; a function is asked here too.
    For a task, keywords are its arguments: `assert_added(resize, path="a.png")`.
    """
    expected = _expected(target, name, data, options)
    wanted = None if count is None else whole("count", count, 1, 2**31)
    jobs = added(expected.queue)
    found = [job for job in jobs if not any(expected.differences(job))]
    if not found or wanted not in (None, len(found)):
        times = "" if wanted is None else f"{wanted} times "
        raise AssertionError(_complaint(f"expected {times}{expected}; found {len(found)}", expected, jobs, found))
    return found[0]


def assert_not_added(target: Target, name: str | None = None, *, data: Any = msgspec.UNSET, **options: Any) -> None:
    """Fails if such a job was added; without a name, if any job was."""
    expected = _expected(target, name, data, options)
    jobs = added(expected.queue)
    found = [job for job in jobs if not any(expected.differences(job))]
    if found:
        raise AssertionError(f"expected that nobody adds {expected}; found {len(found)}{_listed('these', found)}")


class _Expected(NamedTuple):
    queue: Queue
    name: str | None
    data: Any
    options: Mapping[str, Any]

    def differences(self, job: AddedJob) -> Iterator[str]:
        if self.name not in (None, job.name):
            yield f"name is {job.name!r}: expected {self.name!r}"
        if self.data is not msgspec.UNSET:
            yield from differences(self.data, job.data, "data")
        for option, given in self.options.items():
            value = given if callable(given) else job.expected(option, given)
            yield from differences(value, job.option(option), option)

    def __str__(self) -> str:
        parts = [] if self.data is msgspec.UNSET else [f"data {self.data!r:.400}"]
        parts += [f"{option} {value!r:.100}" for option, value in self.options.items()]
        named = "a job" if self.name is None else f"a job {self.name!r}"
        return f"{named} in {self.queue.name!r}{' with ' if parts else ''}{', '.join(parts)}"


def _expected(target: Target, name: str | None, data: Any, options: Mapping[str, Any]) -> _Expected:
    if isinstance(target, Queue):
        return _Expected(target, None if name is None else job_name(name), data, options)
    if not isinstance(target, Task):
        raise InvalidOption("target", f"cannot be {target!r:.80}: give a queue or a task")
    if name is not None:
        raise InvalidOption("name", f"is that of the task, {target.name!r}: give its arguments as keywords")
    arguments = options or data
    return _Expected(target.queue, target.name, arguments, {})


def _complaint(problem: str, expected: _Expected, jobs: list[AddedJob], found: list[AddedJob]) -> str:
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
