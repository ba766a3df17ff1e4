"""Comparing a value with a test's expectation, and describing the differences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from ..job.models import dump_model

_JSON: Final = (str, int, float, bool, type(None), list, dict)


def differences(expected: Any, actual: Any, path: str) -> Iterator[str]:
    """The differences, one text each; none if `actual` matches.

    A mapping matches one that has at least its keys, and an object that has such fields; a list one of its length, item
    by item; a type its instances; a function that answers whether a value is right, that value; and everything what it
    is equal to, or what JSON holds for it.
    """
    match expected:
        case Mapping() if (fields := _fields(actual, expected)) is not None:
            for key, value in expected.items():
                where = f"{path}.{key}" if str(key).isidentifier() else f"{path}[{key!r}]"
                if key in fields:
                    yield from differences(value, fields[key], where)
                else:
                    yield f"{where} is missing: expected {_shown(value)}"
        case list() | tuple() if isinstance(actual, list | tuple) and len(actual) == len(expected):
            for number, (value, found) in enumerate(zip(expected, actual, strict=True)):
                yield from differences(value, found, f"{path}[{number}]")
        case _ if not _matches(expected, actual):
            yield f"{path} is {actual!r:.200}: expected {_shown(expected)}"


def _fields(actual: Any, names: Iterable[Any]) -> Mapping[Any, Any] | None:
    """The fields of an object, by their Python names, and by their JSON names where these differ."""
    if isinstance(actual, Mapping):
        return actual
    plain = _plain(actual)
    if not isinstance(plain, dict):
        return None
    return plain | {name: getattr(actual, str(name)) for name in names if hasattr(actual, str(name))}


def _matches(expected: Any, actual: Any) -> bool:
    if isinstance(expected, type):
        return isinstance(actual, expected) or isinstance(_plain(actual), expected)
    if callable(expected):
        return bool(expected(actual))
    if expected == actual:
        return True
    return not isinstance(actual, _JSON) and bool(_plain(expected) == _plain(actual))


def _plain(value: Any) -> Any:
    """The value as JSON; unchanged if it cannot be encoded."""
    try:
        return msgspec.to_builtins(value, str_keys=True, enc_hook=dump_model)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return value


def _shown(expected: Any) -> str:
    if isinstance(expected, type):
        return f"a value of type {expected.__name__}"
    if callable(expected):
        return f"a value for which {getattr(expected, '__name__', expected)!s} answers True"
    return f"{expected!r:.200}"
