"""The registry of handlers: finds the function for a job by queue and name."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple, NoReturn, TypeAlias

from ..client.jobtype import JobType
from ..client.pipelines import Pipeline
from ..client.queue import Queue
from ..client.running import RunIn, is_async
from ..client.tasks import AnyTask, TaskFunction
from ..errors import InvalidOption
from ..job.names import job_name
from ..showing import shown
from .child import ProcessJob, ProcessPhaseContext
from .handler_checks import refuse_other_calls, refuse_other_jobs
from .job import Job
from .pipeline_plan import PipelinePlan
from .processes import Source, source_of, source_of_task
from .thread_job import SyncJob
from .typed import Dump, call_handler, call_task, dump_result

AsyncHandler: TypeAlias = Callable[[Job], Awaitable[Any]]
SyncHandler: TypeAlias = Callable[[SyncJob], Any]
ProcessHandler: TypeAlias = Callable[[ProcessJob], Any]
ProcessPhase: TypeAlias = Callable[[ProcessJob, ProcessPhaseContext], Any]
HandlerFunction: TypeAlias = "AsyncHandler | SyncHandler | InProcess | AnyTask | Pipeline"

EVERY_NAME: Final = "*"


class InProcess(NamedTuple):
    """A function marked by `in_process`."""

    function: ProcessHandler | ProcessPhase


def in_process(function: ProcessHandler | ProcessPhase) -> InProcess:
    """Makes a handler or a phase run in separate processes, which can crash or be killed without harming the worker.

    Use it as in `Worker(queue, {"crunch": in_process(crunch)})`. The function, `def` or `async def`, must be defined at
    the top of a module. A cancel or a timeout kills its process.
    """
    if isinstance(function, TaskFunction):
        raise InvalidOption("handler", f'is {function!r}: to run it in processes use @queue.task(run_in="process")')
    return InProcess(function)


class Handler(NamedTuple):
    function: Callable[..., Any]
    run_in: RunIn
    source: Source | None = None
    dump: Dump | None = None
    """Converts its results to JSON; None if they are JSON already."""
    task: AnyTask | None = None
    pipeline: PipelinePlan | None = None
    is_plain: bool = False
    """True if it is a coroutine function of the job, to be called on the loop."""

    def json_of(self, result: Any) -> Any:
        return result if self.dump is None else self.dump(result)

    def call_in_thread(self, job: SyncJob) -> Any:
        """Converts the result in this thread, because a large one would block the loop. Awaitables are left as is."""
        result = self.function(job)
        return result if inspect.isawaitable(result) else self.json_of(result)


class Handlers:
    """Handlers by job name, where `*` takes every other name, and the tasks of each queue."""

    def __init__(self, given: HandlerFunction | Mapping[str, HandlerFunction] | None) -> None:
        self._by_name: dict[str, Handler] = {}
        self._other: Handler | None = None
        self._tasks: dict[str, dict[str, Handler]] = {}
        if given is None:
            return
        functions = given if isinstance(given, Mapping) else {EVERY_NAME: given}
        for name, function in functions.items():
            self.register(name, handler_of(name, function))

    def register(self, name: str, handler: Handler) -> None:
        for queue, tasks in self._tasks.items():
            _refuse_both(queue, name, tasks.get(name), handler)
        if name == EVERY_NAME:
            self._other = handler
        else:
            self._by_name[job_name(name)] = handler

    def take_tasks(self, queues: Iterable[Queue]) -> None:
        """Registers the queues' tasks; one that cannot be run is an error now, not when its jobs arrive."""
        taken: dict[str, dict[str, Handler]] = {}
        for queue in queues:
            taken[queue.name] = {name: of_task(task) for name, task in queue.tasks.items()}
            taken[queue.name] |= {name: of_pipeline(task.pipeline) for name, task in queue.pipelines.items()}
            for name, handler in self._by_name.items():
                _refuse_both(queue.name, name, taken[queue.name].get(name), handler)
            if not (taken[queue.name] or self._by_name or self._other):
                problem = f"is missing for {queue!r}: give a function, functions by job name, or use @queue.task"
                raise InvalidOption("handler", problem)
        self._tasks = taken

    def find(self, queue: str, name: str) -> Handler | None:
        tasks = self._tasks.get(queue)
        if tasks and (handler := tasks.get(name)) is not None:
            return handler
        return self._by_name.get(name, self._other)

    def names(self, queue: str) -> tuple[str, ...] | None:
        """The names to claim in a queue; None for every name."""
        return None if self._other else tuple(self._by_name | self._tasks.get(queue, {}))

    @property
    def own_names(self) -> tuple[str, ...] | None:
        """The names that were given to this worker, without tasks."""
        return None if self._other else tuple(self._by_name)


def handler_of(name: str, function: HandlerFunction) -> Handler:
    if isinstance(function, TaskFunction):
        if name == EVERY_NAME:
            problem = f"is {function!r}: Worker(queue) runs the tasks of its queue by itself"
            raise InvalidOption("handler", problem)
        return of_task(function)
    if isinstance(function, Pipeline):
        return of_pipeline(function)
    if isinstance(function, InProcess):
        refuse_other_calls(name, function.function)
        refuse_other_jobs(name, function.function, "process")
        return Handler(function.function, "process", source_of(function.function))
    if callable(function):
        run_in = _place_of(function)
        refuse_other_calls(name, function)
        refuse_other_jobs(name, function, run_in)
        return Handler(function, run_in, is_plain=run_in == "loop")
    raise InvalidOption("handler", f"for {shown(name)} is {shown(function)}: give a function that takes a job")


def of_task(task: AnyTask) -> Handler:
    signature = task.signature
    call = call_task(signature)
    if signature.run_in == "process":
        # The child process calls it, and sends its result as JSON.
        return Handler(call, "process", source_of_task(task), task=task)
    is_plain = signature.run_in == "loop"
    return Handler(call, signature.run_in, dump=dump_result(signature.result), task=task, is_plain=is_plain)


def of_pipeline(pipeline: Pipeline) -> Handler:
    for phase in pipeline.phases:
        function = phase.function
        if isinstance(function, InProcess):
            source_of(function.function)
            refuse_other_calls(phase.name, function.function, 2)
            refuse_other_jobs(phase.name, function.function, "process")
        else:
            refuse_other_calls(phase.name, function, 2)
            refuse_other_jobs(phase.name, function, _place_of(function))
    return Handler(_not_called, "loop", pipeline=PipelinePlan(pipeline))


def _not_called(_: Job) -> NoReturn:
    raise AssertionError("a pipeline is run by its phases")


def of_job_type(job_type: JobType[Any, Any], function: Any) -> Handler:
    if isinstance(function, InProcess | TaskFunction):
        problem = f'for {job_type!r} runs in this process: for others use @queue.task(run_in="process")'
        raise InvalidOption("handler", problem)
    call, dump = call_handler(job_type, function), dump_result(job_type.result)
    run_in = _place_of(function)
    refuse_other_jobs(job_type.name, function, run_in)
    return Handler(call, run_in, dump=dump, is_plain=run_in == "loop")


def _place_of(function: Callable[..., Any]) -> RunIn:
    return "loop" if is_async(function) else "thread"


def _refuse_both(queue: str, name: str, of_queue: Handler | None, given: Handler) -> None:
    if of_queue is not None and of_queue.task is not given.task:
        problem = f"for {name!r} is given, and queue {queue!r} has a task of that name: rename one of them"
        raise InvalidOption("handler", problem)
