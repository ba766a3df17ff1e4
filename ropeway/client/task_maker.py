"""Making a task of a function, or raising the error that says why not."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from ..errors import InvalidOption, InvalidTask
from ..job.choices import is_word
from ..job.names import job_name
from ..job.options import JobOptions, read_options
from ..showing import shown
from .running import is_async
from .signature import TaskSignature
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

    def check(self) -> None:
        """Checks the options when the decorator is made, before it has a function."""
        if self.run_in is not None and not is_word(self.run_in, "process"):
            raise InvalidOption("run_in", f'cannot be {shown(self.run_in)}: use "process", or leave it out')
        if "id" in self.options:
            raise InvalidOption("id", "is for a single job, not for all of a task: use task.using(id=...)")
        if "bind" in self.options:
            raise InvalidOption("bind", "is not needed: a first parameter `job: Job` is given the running job")
        read_options(self.options)

    def make(self, function: Any) -> AnyTask:
        name = _name_of(function) if self.name is None else job_name(self.name)
        for is_wrong, problem in _NO_TASKS:
            if is_wrong(function):
                raise InvalidTask(name, problem)
        run_in = self.run_in or ("loop" if is_async(function) else "thread")
        signature = TaskSignature(name, function, context=self.context, run_in=run_in)
        task: AnyTask = TaskFunction(self.queue, name, signature, self.options)
        self.queue.tasks.register(task)
        return task


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
