"""Making a task of a function, or raising the error that says why not."""

from __future__ import annotations

import inspect
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from ..errors import InvalidArguments, InvalidOption, InvalidTask
from ..job.choices import is_word
from ..job.names import job_name, schedule_id
from ..job.options import JobOptions, read_options, refuse_unknown
from ..showing import shown
from .payload_versions import refuse_version
from .pipelines import Pipeline, PipelineTask
from .running import is_async
from .schedule import TaskSchedule, read_rule
from .signature import NotYetDefined, TaskSignature
from .tasks import AnyTask, TaskFunction

if TYPE_CHECKING:
    from .queue import Queue

InProcessOnly: TypeAlias = Literal["process"] | None


class TaskMaker(NamedTuple):
    """The arguments of `@queue.task(...)`."""

    queue: Queue
    name: str | None = None
    context: bool = False
    run_in: InProcessOnly = None
    options: JobOptions = {}  # noqa: RUF012 - the field of a tuple, and never changed
    schedule: TaskSchedule = {}  # noqa: RUF012 - the field of a tuple, and never changed

    def check(self) -> None:
        """Checks the options when the decorator is made, before it has a function."""
        if self.run_in is not None and not is_word(self.run_in, "process"):
            raise InvalidOption("run_in", f'cannot be {shown(self.run_in)}: use "process", or leave it out')
        if "id" in self.options:
            raise InvalidOption("id", "is for a single job, not for all of a task: use task.using(id=...)")
        refuse_version(self.options)
        if "bind" in self.options:
            raise InvalidOption("bind", "is not needed: a first parameter `job: Job` is given the running job")
        refuse_unknown(self.options, also=sorted(TaskSchedule.__optional_keys__))
        read_options(self.options)
        if self.schedule:
            read_rule(self.schedule)

    def add_pipeline(
        self, pipeline: Pipeline, name: str | None, options: JobOptions, schedule: TaskSchedule
    ) -> PipelineTask:
        if name is None:
            raise InvalidOption("name", "is missing: a pipeline has no name of its own")
        if schedule:
            raise InvalidOption(next(iter(schedule)), "is for functions: use queue.schedule(...) for a pipeline")
        read_options(options)
        named = job_name(name)
        if named in self.queue.tasks or named in self.queue.pipelines:
            raise InvalidTask(named, "the queue has a task of this name already")
        task = self.queue.pipelines[named] = PipelineTask(self.queue, named, pipeline, options)
        return task

    def make(self, function: Any) -> AnyTask:
        name = _name_of(function) if self.name is None else job_name(self.name)
        for is_wrong, problem in _NO_TASKS:
            if is_wrong(function):
                raise InvalidTask(name, problem)
        if self.schedule:
            schedule_id(name)
        run_in = self.run_in or ("loop" if is_async(function) else "thread")
        signature = TaskSignature(name, function, context=self.context, run_in=run_in)
        if self.schedule:
            with suppress(NotYetDefined):  # A worker checks it when it stores the schedule.
                _check_defaults(name, signature)
        task: AnyTask = TaskFunction(self.queue, name, signature, self.options)
        task.schedule = self.schedule
        self.queue.tasks.register(task)
        return task


def _check_defaults(task: str, signature: TaskSignature) -> None:
    try:
        signature.arguments.check("{}")
    except InvalidArguments as wrong:
        problem = f"its schedule adds it without arguments, so each parameter needs a default; it takes {wrong.takes}"
        raise InvalidTask(task, problem) from None


_NO_TASKS: Final = (
    (lambda function: isinstance(function, TaskFunction), "it is one already: decorate its function instead"),
    (lambda function: isinstance(function, staticmethod), "put @staticmethod above @queue.task"),
    (lambda function: isinstance(function, classmethod), "its class is not data: use a function or a staticmethod"),
    (inspect.isclass, "it is a class: use a function"),
    (lambda function: not callable(function), "it is not a function"),
    (inspect.isgeneratorfunction, "it is a generator, whose values nothing would consume: return a list"),
    (inspect.isasyncgenfunction, "it is a generator, whose values nothing would consume: return a list"),
)


def _name_of(function: Any) -> str:
    if isinstance(function, str):
        raise InvalidTask(function, f"it is text, not a function: use @queue.task(name={shown(function)})")
    if not callable(function) and not isinstance(function, classmethod):
        raise InvalidTask(shown(function), "it is not a function")
    name = getattr(function, "__name__", None)
    if not isinstance(name, str) or name == "<lambda>":
        raise InvalidTask(shown(function), 'it has no name of its own: use queue.task(name="...")')
    return job_name(name)
