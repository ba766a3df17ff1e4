"""Whether a value is as a test expects it, and if not, where it differs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def differences(expected: Any, actual: Any, path: str) -> Iterator[str]:
    """Nothing if `actual` matches.

    A mapping matches one that has at least its keys; a list one of its length, item by item; a type its instances; a
    function that answers whether a value is right, that value; and everything what it is equal to.
    """
    match expected:
        case Mapping() if isinstance(actual, Mapping):
            for key, value in expected.items():
                where = f"{path}.{key}" if str(key).isidentifier() else f"{path}[{key!r}]"
                if key in actual:
                    yield from differences(value, actual[key], where)
                else:
                    yield f"{where} is missing: expected {_shown(value)}"
        case list() | tuple() if isinstance(actual, list) and len(actual) == len(expected):
            for number, (value, found) in enumerate(zip(expected, actual, strict=True)):
                yield from differences(value, found, f"{path}[{number}]")
        case _ if not _matches(expected, actual):
            yield f"{path} is {actual!r:.200}: expected {_shown(expected)}"


def _matches(expected: Any, actual: Any) -> bool:
    if isinstance(expected, type):
        return isinstance(actual, expected)
    if callable(expected):
        return bool(expected(actual))
    return bool(expected == actual)


def _shown(expected: Any) -> str:
    if isinstance(expected, type):
        return f"a value of type {expected.__name__}"
    if callable(expected):
        return f"a value for which {getattr(expected, '__name__', expected)!s} answers True"
    return f"{expected!r:.200}"
