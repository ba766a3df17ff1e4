"""The arguments of a task, as stored in its jobs.

A job's data is an object of parameter names and values: `{"path": "a.png", "width": 100}`. What the caller left out is
not stored: the default that counts is the one of the code that runs the job.
"""

from __future__ import annotations

import difflib
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
from ..job.wrong_values import listed, wrong_values
from ..showing import LONGEST_VALUE, shown
from .inputs import Input

_EMPTY: Final = inspect.Parameter.empty
_IMMUTABLE: Final = (str, int, float, bool, type(None))


class Arguments:
    """Checks and encodes the arguments of calls. `hint` is appended to the error of a call that does not fit."""

    def __init__(
        self, task: str, parameters: list[inspect.Parameter], shapes: Mapping[str, Shape[Any]], hint: str = ""
    ) -> None:
        self._task = task
        self._call_hint = hint
        self.shapes = shapes
        self._signature = inspect.Signature([parameter.replace(annotation=_EMPTY) for parameter in parameters])
        self._struct = msgspec.defstruct(
            "Arguments",
            [_field(parameter, shapes[parameter.name].annotation) for parameter in parameters],
            kw_only=True,
            forbid_unknown_fields=True,
        )
        self.keywords = tuple(p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY)
        """The keyword-only parameters, which are last."""
        self.inputs = {p.name: p.default for p in parameters if isinstance(p.default, Input)}
        """Parameters that take the result of a job before."""

    def __str__(self) -> str:
        try:
            return str(self._signature)
        except Exception:  # noqa: BLE001 - the repr of a default may raise anything
            return f"({', '.join(self._signature.parameters)})"

    def dump(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Json:
        """The data of a job for these arguments. Raises for arguments that the worker could not use."""
        try:
            given = self._signature.bind(*args, **kwargs).arguments
        except TypeError as wrong:
            problem = self._unknown(kwargs) or str(wrong)
            raise self._refusal(f"{problem}{self._hint(kwargs)}{self._call_hint}") from None
        data = {name: self.shapes[name].dump(value, f"argument {name!r}") for name, value in given.items()}
        try:
            msgspec.convert(data, self._struct, str_keys=True, dec_hook=load_model)
        except (msgspec.ValidationError, UnicodeError) as wrong:
            raise self._refusal(listed(wrong_values(wrong))) from None
        return data

    def check(self, data: JsonText) -> None:
        """Raises for data that the worker could not read."""
        try:
            self._values(data)
        except msgspec.DecodeError as wrong:
            raise self._refusal(f"its data does not fit: {listed(wrong_values(wrong))}") from None

    @cached_property
    def _values(self) -> Callable[[JsonText], tuple[Any, ...]]:
        return self.decoder()

    def decoder(self) -> Callable[[JsonText], tuple[Any, ...]]:
        """A decoder from a job's data to the values of all parameters, in order, with defaults.

        Raises `msgspec.DecodeError`.
        """
        decode = msgspec.json.Decoder(self._struct | None, dec_hook=load_model).decode

        def values(data: JsonText) -> tuple[Any, ...]:
            # A job that was added by name alone has no data.
            return astuple(decode(data) or decode("{}"))

        return values

    def _refusal(self, problem: str) -> InvalidArguments:
        return InvalidArguments(self._task, problem, str(self))

    def _unknown(self, kwargs: Mapping[str, Any]) -> str | None:
        """The first unknown keyword: Python's own error would name a missing argument instead."""
        known = [p.name for p in self._signature.parameters.values() if p.kind is not p.POSITIONAL_ONLY]
        for name in kwargs:
            if name not in known:
                near = difflib.get_close_matches(name[:LONGEST_VALUE], known, n=1)
                meant = f", did you mean {near[0]!r}?" if near else ""
                return f"got an unexpected keyword argument {shown(name)}{meant}"
        return None

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
