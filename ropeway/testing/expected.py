"""The job that a test expects: its name, its data and its options."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

import msgspec

from ..client.jobtype import JobType
from ..client.pipelines import PipelineTask
from ..client.queue import Queue
from ..client.tasks import Task
from ..errors import InvalidOption
from ..job.codec import Json
from ..job.names import job_name
from ..job.options import JobOptions
from ..job.shape import Shape
from ..showing import shown
from .adds import AddedJob
from .matching import differences

Target: TypeAlias = Queue | Task[..., Any] | PipelineTask


class Expected(NamedTuple):
    queue: Queue
    name: str | None
    data: Any
    options: Mapping[str, Any]
    read: Callable[[Json], Any]
    """Converts a job's data to the values that its handler is given."""

    def differences(self, job: AddedJob) -> Iterator[str]:
        if self.name not in (None, job.name):
            yield f"name is {job.name!r}: expected {self.name!r}"
        if self.data is not msgspec.UNSET:
            # Jobs of other names have data of other types.
            yield from differences(self.data, self.read(job.data) if job.name == self.name else job.data, "data")
        for option, given in self.options.items():
            value = given if callable(given) else job.expected(option, given)
            yield from differences(value, job.option(option), option)

    def __str__(self) -> str:
        parts = [] if self.data is msgspec.UNSET else [f"data {self.data!r:.400}"]
        parts += [f"{option} {value!r:.100}" for option, value in self.options.items()]
        named = "a job" if self.name is None else f"a job {self.name!r}"
        return f"{named} in {self.queue.name!r}{' with ' if parts else ''}{', '.join(parts)}"


def expected_of(
    target: Target,
    name: str | JobType[Any, Any] | None = None,
    data: Any = msgspec.UNSET,
    keywords: Mapping[str, Any] | None = None,
) -> Expected:
    """Builds the expectation. Keywords are options; for a task of a function, its arguments."""
    keywords = keywords or {}
    if isinstance(target, Task):
        if name is not None:
            raise InvalidOption("name", f"is that of the task, {target.name!r}: give its arguments as keywords")
        arguments = _arguments(target, data, keywords)
        return Expected(target.queue, target.name, arguments, target.used_options, _reader(target))
    if isinstance(target, PipelineTask):
        if name is not None:
            raise InvalidOption("name", f"is that of the pipeline, {target.name!r}: leave it out")
        return Expected(target.queue, target.name, data, keywords, lambda data: data)
    if not isinstance(target, Queue):
        raise InvalidOption("target", f"cannot be {shown(target)}: give a queue or a task")
    if isinstance(name, JobType):
        shape = name.data
        return Expected(target, name.name, data, keywords, lambda data: _loaded(shape, data))
    return Expected(target, None if name is None else job_name(name), data, keywords, lambda data: data)


def _arguments(task: Task[..., Any], data: Any, keywords: Mapping[str, Any]) -> Any:
    if keywords:
        if data is not msgspec.UNSET and not isinstance(data, Mapping):
            raise InvalidOption("data", "cannot be given beside arguments, unless it is a mapping of more of them")
        data = {**({} if data is msgspec.UNSET else data), **keywords}
    if isinstance(data, Mapping):
        arguments = task.signature.arguments
        for name in data:
            if name not in arguments.shapes:
                raise InvalidOption(name, f"is no parameter of {task!r}, which takes {arguments}{_hint(task, name)}")
    return data


def _hint(task: Task[..., Any], name: str) -> str:
    if name in JobOptions.__annotations__:
        return f": options are given apart, as in assert_added({task.name}.using({name}=...), ...)"
    return ""


def _reader(task: Task[..., Any]) -> Callable[[Json], Any]:
    shapes = task.signature.arguments.shapes

    def read(data: Json) -> Any:
        if not isinstance(data, Mapping):
            return data
        return {name: _loaded(shapes[name], value) if name in shapes else value for name, value in data.items()}

    return read


def _loaded(shape: Shape[Any], value: Json) -> Any:
    """The loaded value; the raw one if it does not fit the type, because it was added by name alone."""
    try:
        return shape.load(value)
    except msgspec.ValidationError:
        return value
