"""Tasks: functions whose jobs are added with typed arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeAlias, TypeVar, Unpack

from ..errors import InvalidOption, InvalidTask
from ..job.codec import Json, JsonText
from ..job.options import JobOptions, read_options
from .found import FoundJob
from .handle import JobHandle
from .inputs import Input, unfilled
from .name_hints import ON_TASKS, Guided
from .new_jobs import Call
from .payload_versions import refuse_version
from .portal import refuse_on_a_loop, run
from .schedule import TaskSchedule
from .signature import NotYetDefined, TaskSignature
from .sync_found import SyncFoundJob
from .sync_handle import SyncJobHandle

if TYPE_CHECKING:
    from .queue import Queue

P = ParamSpec("P")
R = TypeVar("R")
CallP = ParamSpec("CallP")
CallR = TypeVar("CallR")


class Task(Guided, Generic[P, R]):
    """Adds jobs of one function, with arguments that type checkers see: `await resize.add("a.png", width=100)`."""

    _foreign_names = ON_TASKS

    def __init__(
        self,
        queue: Queue,
        name: str,
        signature: TaskSignature,
        options: JobOptions,
        using: JobOptions | None = None,
        tx: object = None,
    ) -> None:
        self.queue = queue
        self.name = name
        self.signature = signature
        self.used_options: JobOptions = using or {}
        """Options given by `using`; the others come from the decorator."""
        self.options: JobOptions = {**options, **self.used_options}
        self._tx = tx

    def __repr__(self) -> str:
        return f"<Task {self.name!r} of {self.queue.name!r}>"

    def using(self, *, tx: object = None, **options: Unpack[JobOptions]) -> Task[P, R]:
        """The same task with other options for its jobs: `await resize.using(delay=60).add("a.png")`.

        With `tx` they are added in your own transaction: see `queue.add`.
        """
        refuse_version(options)
        read_options(options)
        tx = self._tx if tx is None else tx
        return Task(self.queue, self.name, self.signature, self.options, {**self.used_options, **options}, tx)

    async def add(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R]:
        """Stores a job that runs the function with these arguments.

        Raises `InvalidArguments` if they do not fit the function, and stores nothing then.
        """
        return await self.queue.add_call(self._call(*args, **kwargs), tx=self._tx)

    def add_sync(self, *args: P.args, **kwargs: P.kwargs) -> SyncJobHandle[R]:
        """`add` for code without an event loop."""
        refuse_on_a_loop("await task.add(...)")
        return self.queue.sync.add_call(self._call(*args, **kwargs), tx=self._tx)

    async def get(self, id: str) -> FoundJob[R] | None:
        """A job of this task by its id, with a typed result; None if it does not exist."""
        job = await self.queue.get(id)
        return None if job is None or job.name != self.name else job.typed(self.signature.result.load)

    def get_sync(self, id: str) -> SyncFoundJob[R] | None:
        """`get` for code without an event loop."""
        job = run(self.get(id))
        return None if job is None else job.sync

    def call(self, *args: P.args, **kwargs: P.kwargs) -> Call[R]:
        """The job that `add` would store, for `queue.add_many` and for flows: `call(...).after(...)`."""
        if self._tx is not None:
            raise InvalidOption("tx", "is for adding, and `call` adds nothing: give it to queue.add_many")
        return self._call(*args, **kwargs)

    def _call(self, *args: P.args, **kwargs: P.kwargs) -> Call[R]:
        arguments = self.signature.arguments
        data = arguments.dump(args, kwargs)
        inputs = unfilled(arguments.inputs, data) if arguments.inputs else {}
        return Call(self.name, data, self.options, self.signature.result.load, self.queue, inputs=inputs)


class TaskFunction(Task[P, R], Generic[CallP, CallR, P, R]):
    """A task as returned by its decorator: calling it runs the function directly, and stores nothing."""

    __name__: str

    def __init__(self, queue: Queue, name: str, signature: TaskSignature, options: JobOptions) -> None:
        super().__init__(queue, name, signature, options)
        self.function: Callable[CallP, CallR] = signature.function
        self.schedule: TaskSchedule = {}
        """The rule by which workers of its queue make jobs of it, if its decorator gives one."""
        update_wrapper(self, self.function, updated=())

    def __call__(self, *args: CallP.args, **kwargs: CallP.kwargs) -> CallR:
        return self.function(*args, **kwargs)


AnyTask: TypeAlias = TaskFunction[..., Any, ..., Any]


class Tasks(Mapping[str, AnyTask]):
    """The tasks of a queue, by name."""

    def __init__(self) -> None:
        self._by_name: dict[str, AnyTask] = {}
        self.defaults: dict[str, JobOptions] = {}
        """Options of jobs added by name: the task's, else the queue's."""

    def register(self, task: AnyTask) -> None:
        known = self._by_name.setdefault(task.name, task)
        if known is not task:
            where = f"{known.function.__module__}.{getattr(known.function, '__qualname__', known.name)}"
            raise InvalidTask(task.name, f'{known!r} ({where}) has this name already: use @queue.task(name="...")')
        self.defaults[task.name] = {**task.queue.defaults, **task.options}

    def check(self, name: str, data: JsonText) -> None:
        """Raises `InvalidArguments` for data with which a worker could not call the task."""
        try:
            arguments = self._by_name[name].signature.arguments
        except NotYetDefined:
            # A producer that adds by name alone need not have the types.
            return
        arguments.check(data)

    def inputs(self, name: str, data: Json) -> dict[str, Input]:
        """The parameters of a task that take results of jobs before it, and have no value in the data."""
        task = self._by_name.get(name)
        try:
            return {} if task is None else unfilled(task.signature.arguments.inputs, data)
        except NotYetDefined:
            return {}

    def __getitem__(self, name: str) -> AnyTask:
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)
