"""Checks of commands that came over a network, beyond their types: JSON where JSON is meant, and no NUL.

A damaged text would be stored as it is, and fail whoever reads it later. Programs of this package send none.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import inspect

from ..errors import InvalidOption
from ..job.codec import IS_JSON
from .commands import Command

Find: TypeAlias = Callable[[Any], str | None]
"""The path to the first text in a value that is no JSON; None if there is none."""

_ESCAPED_NUL: Final = b"\\u0000"
_skip: Final = msgspec.json.Decoder(msgspec.Raw).decode
_as_json: Final = msgspec.json.Encoder().encode


def check_texts(command: Command[Any]) -> None:
    """Raises `InvalidOption`, with the path of the first text that cannot be stored."""
    find = _finder(type(command))
    if find is not None and (path := find(command)) is not None:
        raise InvalidOption(path[1:], "is no JSON")
    # All texts at once: JSON always writes a NUL so. It may also be one that is escaped in a payload, which is fine.
    if _ESCAPED_NUL in _as_json(command):
        _refuse_nul(msgspec.to_builtins(command), "")


def _refuse_nul(value: Any, path: str) -> None:
    match value:
        case str() if "\x00" in value:
            raise InvalidOption(path, "has the character NUL, which not every store can hold: leave it out")
        case list():
            for index, item in enumerate(value):
                _refuse_nul(item, f"{path}[{index}]")
        case dict():
            for key, item in value.items():
                _refuse_nul(key, path)
                _refuse_nul(item, f"{path}.{key}" if path else key)


@cache
def _finder(command: type[Command[Any]]) -> Find | None:
    return _of(inspect.type_info(command))


def _of(shape: inspect.Type) -> Find | None:
    """Derived from a type; None if it has no texts that must be JSON, so that nothing is done for it."""
    match shape:
        case inspect.Metadata(type=inner, extra=extra):
            return _not_json if (extra or {}).get(IS_JSON) else _of(inner)
        case inspect.UnionType(types=types):
            return next(filter(None, map(_of, types)), None)
        case inspect.VarTupleType(item_type=item) | inspect.CollectionType(item_type=item):
            find = _of(item)
            return None if find is None else _in_items(find)
        case inspect.StructType(fields=fields):
            found = [(field.name, find) for field in fields if (find := _of(field.type)) is not None]
            return _in_fields(found) if found else None
    return None


def _not_json(text: str) -> str | None:
    try:
        _skip(text)
    except (msgspec.DecodeError, RecursionError):
        return None if _is_odd_json(text) else ""
    return None


def _is_odd_json(text: str) -> bool:
    """True for JSON that only some readers accept, as half of a surrogate pair that is escaped."""
    try:
        json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return False
    return True


def _refuse_constant(name: str) -> None:
    raise ValueError(f"JSON has no {name}")


def _in_items(inner: Find) -> Find:
    def find(items: Any) -> str | None:
        for index, item in enumerate(items):
            if (path := inner(item)) is not None:
                return f"[{index}]{path}"
        return None

    return find


def _in_fields(fields: list[tuple[str, Find]]) -> Find:
    def find(value: Any) -> str | None:
        for name, inner in fields:
            item = getattr(value, name)
            if item is not None and (path := inner(item)) is not None:
                return f".{name}{path}"
        return None

    return find
