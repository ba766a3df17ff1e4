"""Types that msgspec does not support itself: pydantic models, recognised by their methods, and `object`."""

from __future__ import annotations

from typing import Any

import msgspec

from ..showing import kind_of

_encode = msgspec.json.Encoder().encode


def is_known(kind: type) -> bool:
    return kind is object or is_model(kind)


def is_model(kind: type) -> bool:
    """Recognises pydantic models by their methods, without importing pydantic, which need not be installed."""
    return callable(getattr(kind, "model_validate_json", None)) and callable(getattr(kind, "model_dump", None))


def is_model_error(error: object) -> bool:
    """Recognises the error of a pydantic model, which lists what is wrong and where."""
    return isinstance(error, ValueError) and callable(getattr(error, "errors", None))


def dump_model(value: Any) -> Any:
    if is_model(type(value)):
        return value.model_dump(mode="json", by_alias=True, round_trip=True)
    raise TypeError(f"{kind_of(value)} is neither JSON nor of a type that can be written as JSON")


def load_model(kind: type[Any], value: Any) -> Any:
    # Via JSON: a strict model accepts text for a date only there.
    return kind.model_validate_json(_encode(value)) if is_model(kind) else value
