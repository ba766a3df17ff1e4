"""The signature of a task: its arguments and result, read from its function."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from functools import cached_property
from types import SimpleNamespace
from typing import Any, Final, Never, NoReturn, get_args, get_origin, get_type_hints

from ..errors import InvalidTask
from ..job.shape import Shape
from ..showing import error_text, shown, with_article
from .arguments import Arguments
from .running import GIVEN, KIND_GIVEN, RunIn, RunningJob

_ANY_NUMBER: Final = {
    inspect.Parameter.VAR_POSITIONAL: ("*", "take a list"),
    inspect.Parameter.VAR_KEYWORD: ("**", "take a dict, or name them"),
}
_LIKE_A_JOB: Final = ("job", "ctx", "context")


class NotYetDefined(InvalidTask):
    """An annotation names something that is not defined, or not yet."""


class TaskSignature:
    """Read at decoration; annotations that refer to later definitions are read when first needed."""

    def __init__(self, task: str, function: Callable[..., Any], *, context: bool, run_in: RunIn) -> None:
        self.function = function
        self.run_in: RunIn = run_in
        self._task = task
        self._context = context
        try:
            signature = inspect.signature(function)
        except (TypeError, ValueError) as unknown:
            raise InvalidTask(task, f"its parameters cannot be read: {error_text(unknown)}") from None
        self._parameters = _checked(task, list(signature.parameters.values()), context)
        self._returns = signature.return_annotation
        self._names = names_of(function)
        with suppress(NotYetDefined):
            _ = self.arguments, self.result

    @cached_property
    def takes_job(self) -> bool:
        """True if its first parameter is the running job."""
        if self._context or not self._parameters:
            return self._context
        kind = self._annotation(self._parameters[0])
        if not (isinstance(kind, type) and issubclass(kind, RunningJob)):
            return False
        # The base class itself is never passed to a handler.
        if getattr(kind, "run_in", None) != self.run_in:
            asked = with_article(kind.__name__)
            problem = f'it asks for {asked}; {GIVEN}, and a function with run_in="process" a ProcessJob'
            raise InvalidTask(self._task, problem)
        if self._parameters[0].kind is inspect.Parameter.KEYWORD_ONLY:
            raise InvalidTask(self._task, "the job is given by position, and its parameter has to be named")
        return True

    @cached_property
    def arguments(self) -> Arguments:
        parameters = self._parameters[self.takes_job :]
        shapes = {each.name: self._shape(each) for each in parameters}
        return Arguments(self._task, parameters, shapes, self._job_hint())

    def _job_hint(self) -> str:
        """A hint for a function that seems to want the running job, but is not annotated so."""
        first = self._parameters[0] if self._parameters else None
        if self.takes_job or first is None or first.name not in _LIKE_A_JOB or first.annotation is not first.empty:
            return ""
        kind = KIND_GIVEN[self.run_in]
        return f" (to be given the running job, annotate its parameter: `{first.name}: {kind}`, from ropeway)"

    @cached_property
    def result(self) -> Shape[Any]:
        annotation = self._evaluated("its result", self._returns)
        if get_origin(annotation) in (Awaitable, Coroutine):
            # A plain function that returns a coroutine: its result is that of the coroutine.
            annotation = get_args(annotation)[-1]
        if annotation in (NoReturn, Never):
            annotation = Any
        return self._checked_shape("its result", annotation)

    def _shape(self, parameter: inspect.Parameter) -> Shape[Any]:
        annotation = self._annotation(parameter)
        if isinstance(annotation, type) and issubclass(annotation, RunningJob):
            raise InvalidTask(self._task, f"the job is given as the first parameter, not as {parameter.name!r}")
        return self._checked_shape(f"parameter {parameter.name!r}", annotation)

    def _checked_shape(self, what: str, annotation: Any) -> Shape[Any]:
        try:
            return Shape(annotation)
        except NameError as missing:
            raise self._undefined(what, missing) from None
        except Exception as wrong:  # noqa: BLE001 - an annotation may be any object
            problem = f"{what} is {_named(annotation)}, which JSON cannot hold: {error_text(wrong)}"
            raise InvalidTask(self._task, problem) from None

    def _annotation(self, parameter: inspect.Parameter) -> Any:
        return self._evaluated(f"parameter {parameter.name!r}", parameter.annotation)

    def _evaluated(self, what: str, annotation: Any) -> Any:
        """Evaluates one annotation: if it fails, the error can name it, and the others are not affected."""
        if annotation is inspect.Signature.empty:
            return annotation
        try:
            return evaluated(annotation, self._names)
        except NameError as missing:
            raise self._undefined(what, missing) from None
        except Exception as wrong:  # noqa: BLE001 - an annotation may be any expression
            raise InvalidTask(self._task, f"the annotation of {what} cannot be read: {error_text(wrong)}") from None

    def _undefined(self, what: str, missing: NameError) -> NotYetDefined:
        return NotYetDefined(
            self._task,
            f"{missing} (in the annotation of {what}): import it also at run time, or define it at the top of a module",
        )


def _checked(task: str, parameters: list[inspect.Parameter], context: bool) -> list[inspect.Parameter]:
    for parameter in parameters:
        if parameter.kind in _ANY_NUMBER:
            stars, remedy = _ANY_NUMBER[parameter.kind]
            raise InvalidTask(
                task,
                f"parameter {stars + parameter.name!r} has no name of its own for each value: {remedy} "
                "(a decorator in between needs functools.wraps)",
            )
    first = parameters[0] if parameters else None
    if first is not None and first.name in ("self", "cls"):
        raise InvalidTask(task, "a method has no instance when a worker runs it: use a function or a staticmethod")
    if context and (first is None or first.kind is inspect.Parameter.KEYWORD_ONLY):
        raise InvalidTask(task, "with context=True its first parameter is given the job, and it has none")
    return parameters


def evaluated(annotation: Any, names: dict[str, Any]) -> Any:
    """Evaluates an annotation; raises `NameError` and others if that fails."""
    return get_type_hints(SimpleNamespace(__annotations__={"it": annotation}), names, include_extras=True)["it"]


def _named(annotation: Any) -> str:
    name = getattr(annotation, "__qualname__", None)
    return name if isinstance(name, str) else shown(annotation)


def names_of(function: Any) -> dict[str, Any]:
    """The global names of the module where it was defined, which annotations may use."""
    names: dict[str, Any] = getattr(_definition(function), "__globals__", {})
    return names


def _definition(function: Any) -> Any:
    """The underlying function: without decorators, partials, bound methods and callable objects."""
    while True:
        if isinstance(function, functools.partial):
            function = function.func
        elif hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        elif inspect.ismethod(function):
            function = function.__func__
        elif not inspect.isroutine(function) and callable(function):
            function = type(function).__call__
        else:
            return function
