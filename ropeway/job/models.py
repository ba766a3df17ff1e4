"""Types that msgspec does not know by itself: pydantic's models, known by their methods, and `object`."""

from __future__ import annotations

from typing import Any

import msgspec

from ..showing import kind_of

_encode = msgspec.json.Encoder().encode


def is_known(kind: type) -> bool:
    return kind is object or is_model(kind)


def is_model(kind: type) -> bool:
    """By its methods: pydantic need not be installed, and is not imported to see that a class is none of its models."""
    return callable(getattr(kind, "model_validate_json", None)) and callable(getattr(kind, "model_dump", None))


def dump_model(value: Any) -> Any:
    if is_model(type(value)):
        return value.model_dump(mode="json", by_alias=True, round_trip=True)
    raise TypeError(f"{kind_of(value)} is neither JSON nor of a type that can be written as JSON")


def load_model(kind: type[Any], value: Any) -> Any:
    # By way of JSON: a strict model takes text for a date only there.
    return kind.model_validate_json(_encode(value)) if is_model(kind) else value
