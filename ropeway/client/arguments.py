"""The arguments of a task, as its jobs carry them.

A job's data is an object of parameter names and values: `{"path": "a.png", "width": 100}`. What the caller left out is
not stored: the default that counts is the one of the code that runs the job.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import Any, Final

import msgspec
from msgspec.structs import astuple

from ..errors import InvalidArguments
from ..job.codec import Json, JsonText
from ..job.models import load_model
from ..job.options import JobOptions
from ..job.shape import Shape

_EMPTY: Final = inspect.Parameter.empty
_IMMUTABLE: Final = (str, int, float, bool, type(None))


class Arguments:
    def __init__(self, task: str, parameters: list[inspect.Parameter], shapes: Mapping[str, Shape[Any]]) -> None:
        self._task = task
        self.shapes = shapes
        self._signature = inspect.Signature([parameter.replace(annotation=_EMPTY) for parameter in parameters])
        self._struct = msgspec.defstruct(
            "Arguments",
            [_field(parameter, shapes[parameter.name].annotation) for parameter in parameters],
            kw_only=True,
            forbid_unknown_fields=True,
        )
        self.keywords = tuple(p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY)
        """The parameters at the end that a call must name."""

    def __str__(self) -> str:
        return str(self._signature)

    def dump(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Json:
        """What a job that is called like this carries. Raises what a worker would otherwise stumble over."""
        try:
            given = self._signature.bind(*args, **kwargs).arguments
        except TypeError as wrong:
            raise self._refusal(f"{wrong}{self._hint(kwargs)}") from None
        data = {name: self.shapes[name].dump(value, f"argument {name!r}") for name, value in given.items()}
        try:
            msgspec.convert(data, self._struct, str_keys=True, dec_hook=load_model)
        except msgspec.ValidationError as wrong:
            raise self._refusal(str(wrong)) from None
        return data

    def check(self, data: JsonText) -> None:
        """Raises for a job's data that a worker could not read."""
        try:
            self._values(data)
        except msgspec.DecodeError as wrong:
            raise self._refusal(f"its data does not fit: {wrong}") from None

    @cached_property
    def _values(self) -> Callable[[JsonText], tuple[Any, ...]]:
        return self.decoder()

    def decoder(self) -> Callable[[JsonText], tuple[Any, ...]]:
        """From a job's data to the values of all parameters, in their order, defaults filled in.

        Raises `msgspec.DecodeError`.
        """
        decode = msgspec.json.Decoder(self._struct | None, dec_hook=load_model).decode

        def values(data: JsonText) -> tuple[Any, ...]:
            # A job that was added by its name alone has no data at all.
            return astuple(decode(data) or decode("{}"))

        return values

    def _refusal(self, problem: str) -> InvalidArguments:
        return InvalidArguments(self._task, problem, str(self))

    def _hint(self, kwargs: Mapping[str, Any]) -> str:
        options = sorted(kwargs.keys() & JobOptions.__annotations__ - self._signature.parameters.keys())
        return f" (options are given apart: {self._task}.using({options[0]}=...).add(...))" if options else ""


def _field(parameter: inspect.Parameter, annotation: Any) -> Any:
    default = parameter.default
    if default is _EMPTY:
        return parameter.name, annotation
    if type(default) not in _IMMUTABLE:
        # msgspec would copy or refuse it; Python hands every call the same object.
        default = msgspec.field(default_factory=partial(_same, default))
    return parameter.name, annotation, default


def _same(value: Any) -> Any:
    return value
