"""`Pipeline` and `Phase`: a handler in named parts, each with its own stored state, progress and result."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, Unpack

from ..errors import InvalidInput, InvalidOption
from ..job.backoff import Backoff
from ..job.codec import Json
from ..job.durations import Duration
from ..job.marks import PHASE, mark_name
from ..job.numbers import whole
from ..job.options import MOST_ATTEMPTS, JobOptions, read_backoff_in_place, read_timeout
from ..showing import shown
from .handle import JobHandle
from .new_jobs import Call
from .portal import refuse_on_a_loop
from .running import is_async
from .sync_handle import SyncJobHandle

if TYPE_CHECKING:
    from .queue import Queue


MOST_PHASES: Final = 100


class Phase:
    """One part of a pipeline: a function of the job and a context, `async def`, `def`, or marked by `in_process`.

    `attempts` and `timeout` are those of the phase: it is tried again in place, before the job's own attempts count.
    """

    __slots__ = ("attempts", "backoff", "function", "is_async", "name", "timeout")

    def __init__(
        self,
        name: str,
        function: Any,
        *,
        attempts: int = 1,
        timeout: Duration | None = None,
        backoff: Backoff | Duration | None = None,
    ) -> None:
        self.name = mark_name(name, PHASE)
        self.function = function
        self.attempts = whole("attempts", attempts, 1, MOST_ATTEMPTS)
        _, self.timeout = read_timeout("timeout", timeout)
        self.backoff = read_backoff_in_place(backoff)
        if not callable(getattr(function, "function", function)):
            raise InvalidOption("function", f"of phase {name!r} is {shown(function)}: give a function (job, ctx)")
        self.is_async = is_async(function)

    @property
    def is_blocking(self) -> bool:
        """True if its function runs in a thread."""
        return callable(self.function) and not self.is_async

    def __repr__(self) -> str:
        return f"<Phase {self.name!r}>"


class Pipeline:
    """Phases that run in order. A retry, also on another machine, begins at the phase that did not complete."""

    __slots__ = ("phases",)

    def __init__(self, phases: Iterable[Phase]) -> None:
        if not isinstance(phases, Iterable):
            raise InvalidOption("phases", f"cannot be {shown(phases)}: give a list, as Pipeline([Phase(...), ...])")
        self.phases: tuple[Phase, ...] = tuple(phases)
        if not self.phases:
            raise InvalidInput("a pipeline has at least one phase")
        if len(self.phases) > MOST_PHASES:
            raise InvalidInput(f"a pipeline has at most {MOST_PHASES} phases, and not {len(self.phases):,}")
        for phase in self.phases:
            if not isinstance(phase, Phase):
                raise InvalidInput(f"a pipeline is made of Phase(name, function), and not of {shown(phase)}")
        if len(set(self.names)) < len(self.phases):
            twice = next(name for name in self.names if self.names.count(name) > 1)
            raise InvalidInput(f"two phases are named {twice!r}: give each its own name")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(phase.name for phase in self.phases)

    def __repr__(self) -> str:
        return f"<Pipeline {' -> '.join(self.names)}>"


class PipelineTask:
    """A pipeline of a queue under a name, by `queue.task(pipeline, name="import")`: adds its jobs."""

    def __init__(self, queue: Queue, name: str, pipeline: Pipeline, options: JobOptions) -> None:
        self.queue = queue
        self.name = name
        self.pipeline = pipeline
        self.options = options

    def __repr__(self) -> str:
        return f"<PipelineTask {self.name!r} of {self.queue.name!r}>"

    async def add(self, data: Json = None, *, tx: object = None, **options: Unpack[JobOptions]) -> JobHandle:
        """Stores a job that runs the pipeline with this data."""
        return await self.queue.add_call(self.call(data, **options), tx=tx)

    def add_sync(self, data: Json = None, *, tx: object = None, **options: Unpack[JobOptions]) -> SyncJobHandle:
        """`add` for code without an event loop."""
        refuse_on_a_loop("await task.add(...)")
        return self.queue.sync.add_call(self.call(data, **options), tx=tx)

    def call(self, data: Json = None, **options: Unpack[JobOptions]) -> Call[Json]:
        """A job that is not added yet, for flows, `add_many` and `job.gather`."""
        return Call(self.name, data, options, queue=self.queue)
