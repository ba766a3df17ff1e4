"""`@queue.task` with its overloads for type checkers."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, Literal, ParamSpec, TypeAlias, TypeVar, Unpack, overload

from ..errors import InvalidTask
from .pipelines import Pipeline, PipelineTask
from .running import RunningJob
from .schedule import TaskOptions, split_options
from .task_maker import InProcessOnly, TaskMaker
from .tasks import AnyTask, TaskFunction

P = ParamSpec("P")
R = TypeVar("R")
J = TypeVar("J", bound=RunningJob)

Coro: TypeAlias = Coroutine[Any, Any, R]


class _Unlike:
    """A type that matches only `Any` and `object`."""


class TaskDecorator:
    """Makes a task of a function; called with options alone, returns a decorator with these options."""

    def __init__(self, maker: TaskMaker) -> None:
        self._maker = maker

    @overload
    def __call__(self, function: Pipeline, /, *, name: str, **options: Unpack[TaskOptions]) -> PipelineTask: ...
    # The next three are for `Any`, which matches everything and would be taken for a job or a coroutine.
    @overload
    def __call__(self, function: Callable[Concatenate[_Unlike, ...], Any], /) -> AnyTask: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[J, P], _Unlike], /
    ) -> TaskFunction[Concatenate[J, P], Any, P, Any]: ...
    @overload
    def __call__(self, function: Callable[P, _Unlike], /) -> TaskFunction[P, Any, P, Any]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[J, P], Coro[R]], /
    ) -> TaskFunction[Concatenate[J, P], Coro[R], P, R]: ...
    @overload
    def __call__(self, function: Callable[P, Coro[R]], /) -> TaskFunction[P, Coro[R], P, R]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[J, P], R], /) -> TaskFunction[Concatenate[J, P], R, P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> TaskFunction[P, R, P, R]: ...
    @overload
    def __call__(
        self,
        *,
        context: Literal[True],
        name: str | None = None,
        run_in: InProcessOnly = None,
        **options: Unpack[TaskOptions],
    ) -> ContextTaskDecorator: ...
    @overload
    def __call__(
        self, *, name: str | None = None, run_in: InProcessOnly = None, **options: Unpack[TaskOptions]
    ) -> TaskDecorator: ...
    def __call__(
        self,
        function: Any = None,
        *,
        context: bool = False,
        name: str | None = None,
        run_in: InProcessOnly = None,
        **options: Unpack[TaskOptions],
    ) -> Any:
        if isinstance(function, Pipeline):
            return self._maker.add_pipeline(function, name, *split_options(options))
        has_options = context or name is not None or run_in is not None or bool(options)
        if function is not None and has_options:
            called = getattr(function, "__name__", "function")
            raise InvalidTask(called, f"options stand before the function: queue.task(name=..., ...)({called})")
        if function is not None:
            return self._maker.make(function)
        maker = TaskMaker(self._maker.queue, name, context, run_in, *split_options(options))
        maker.check()
        return ContextTaskDecorator(maker) if context else TaskDecorator(maker)


class ContextTaskDecorator:
    """The decorator for `context=True`: the first parameter is the running job, whatever its annotation."""

    def __init__(self, maker: TaskMaker) -> None:
        self._maker = maker

    @overload
    def __call__(
        self, function: Callable[Concatenate[Any, P], Coro[R]], /
    ) -> TaskFunction[Concatenate[Any, P], Coro[R], P, R]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[Any, P], R], /) -> TaskFunction[Concatenate[Any, P], R, P, R]: ...
    def __call__(self, function: Any) -> Any:
        return self._maker.make(function)
