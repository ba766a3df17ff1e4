"""Results of steps and of gathered jobs: from what functions return to JSON, and back."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from functools import partial
from typing import Any, Final, get_origin, get_type_hints

import msgspec

from ..client.new_jobs import Call
from ..errors import InvalidInput, InvalidPayload, StepChanged, StepFailed, Unrecoverable
from ..job.codec import Json, JsonText, encode
from ..job.failure import failure_of
from ..job.record import JobRecord
from ..job.shape import Shape
from ..job.steps import StepResult
from ..showing import error_text, shown

_ANY: Final[Shape[Any]] = Shape(Any)


def result_shape(name: object, function: object) -> Shape[Any]:
    """How results of a step's function become JSON and back, by its return annotation.

    Refuses what is no function, and a function where the name of the step should be.
    """
    if callable(name):
        called = str(getattr(name, "__name__", ""))
        begin = f'"{called}", {called}' if called.isidentifier() else "name, function"
        raise InvalidInput(f"the name of a step comes first, before its function: job.step({begin}, ...)")
    if not callable(function):
        problem = f"a step takes a function, and after it the arguments, not {shown(function)}"
        raise InvalidInput(f"{problem}: job.step(name, function, ...)")
    try:
        annotation = _result_type(function)
        return _ANY if annotation is Any else Shape(annotation)
    except Exception:  # noqa: BLE001 - names that exist only for type checkers, and annotations of any kind
        return _ANY


def _result_type(function: Any) -> Any:
    """What a call returns, by the annotation of the function, or of the `__call__` of an object; of a class that class.

    Not of `list`, `dict` and the like, which say nothing of what is in them.
    """
    while isinstance(function, partial):
        function = function.func
    if isinstance(get_origin(function) or function, type):
        return Any if function.__module__ == "builtins" else function
    call = type(function).__call__
    return get_type_hints(call if inspect.isfunction(call) else function).get("return", Any)


def dump_step(what: str, shape: Shape[Any], result: Any, took: float, size_limit: int) -> tuple[JsonText, Any]:
    """The result of a step as it is stored, and as it is read back, by this attempt and all later ones."""
    what = f"result of {what}"
    plain = encode(shape.dump(result, what), what, size_limit)
    text = f'{{"result":{plain},"took":{round(took, 4)}}}'
    try:
        return text, _load(shape, text)
    except Exception as error:
        raise InvalidPayload(what, "$", f"is not of the type that its function says: {error_text(error)}") from error


def dump_failure(error: Unrecoverable, took: float) -> tuple[JsonText, str]:
    """The failure of a step as it is stored, and its reason."""
    reason = failure_of(error).reason
    return msgspec.json.encode(StepResult(took=round(took, 4), reason=reason)).decode(), reason


def load_step(step: str, shape: Shape[Any], text: JsonText, record: JobRecord) -> Any:
    """The result of a step that was stored by an earlier attempt; raises its failure, if it has failed."""
    reason = msgspec.json.decode(text, type=StepResult).reason
    if reason is not None:
        raise StepFailed(record.queue, record.id, step, reason)
    try:
        return _load(shape, text)
    except Exception as error:
        raise StepChanged(record.queue, record.id, step, error_text(error)) from error


def _load(shape: Shape[Any], text: JsonText) -> Any:
    return shape.load(msgspec.json.decode(text, type=StepResult).result)


def read_results(calls: Iterable[object], results: Iterable[Json]) -> list[Any]:
    """The results of gathered jobs, of the types that their tasks return; None for a job that was removed."""
    return [
        call.read_result(result)
        if isinstance(call, Call) and call.read_result is not None and result is not None
        else result
        for call, result in zip(calls, results, strict=True)
    ]
