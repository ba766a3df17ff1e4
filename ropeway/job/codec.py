"""Exact JSON: a value reads back as it was, or is refused where it was given.

`msgspec` is fast but generous: it writes NaN as null, dates and sets as something else. Whatever does not
read back as it was is looked at piece by piece, so that the error can name the place.
"""

from __future__ import annotations

import math
import re
from collections.abc import Awaitable, Sequence
from enum import Enum
from typing import Annotated, Any, Final, TypeAlias

import msgspec

from ..errors import InvalidPayload, PayloadTooLarge, RopewayError
from ..showing import kind_of, on_one_line, shortened, shown

IS_JSON: Final = "is JSON"
JsonText: TypeAlias = Annotated[str, msgspec.Meta(extra={IS_JSON: True})]
"""A text in JSON, which is stored and returned as it is."""
OpaqueText: TypeAlias = str
"""The same where stores never look into it: who reads it deals with damage, which fails one job alone."""
Json: TypeAlias = Any

SIZE_LIMIT: Final = 1024 * 1024
LARGEST_SIZE_LIMIT: Final = 16 * 1024 * 1024
DEPTH_LIMIT: Final = 64
DIGIT_LIMIT: Final = 1000
LONGEST_PATH: Final = 200

_PLAIN: Final = (str, int, float, bool)
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_has_long_number = re.compile(rb"\d{%d}" % (DIGIT_LIMIT + 1)).search


def encode(value: Json, what: str = "data", limit: int = SIZE_LIMIT) -> JsonText:
    """Encodes a value; `limit` is in bytes of the encoded text."""
    try:
        text = _encode(value)
        length = len(text)
        # Every add does this: what a short text cannot be is not looked for.
        if length <= limit and (length <= DEPTH_LIMIT or not _is_suspicious(text)) and _decode(text) == value:
            return text.decode()
    except Exception:  # noqa: BLE001, S110 - a value may compare as it likes
        pass
    # It may not read back as it was.
    text = _encode_piecewise(value, what)
    if len(text) > limit:
        raise PayloadTooLarge(what, len(text), limit)
    return text.decode()


def _encode_piecewise(value: Json, what: str) -> bytes:
    try:
        _check(value, what, "$", 0)
        return _encode(value)
    except (RopewayError, MemoryError):
        raise
    except Exception as error:
        # A subclass of list or dict that cannot be iterated.
        raise InvalidPayload(what, "$", f"is {kind_of(value)} that raised {type(error).__name__}") from error


def decode(text: JsonText) -> Json:
    return _decode(text)


def _is_suspicious(text: bytes) -> bool:
    """True if a text that is long enough for it may be nested too deeply, or contain too long a number."""
    return text.count(b"[") + text.count(b"{") > DEPTH_LIMIT or _has_long_number(text) is not None


def _check(value: object, what: str, path: str, depth: int) -> None:
    """Raises at the first piece that JSON cannot represent exactly."""
    if depth > DEPTH_LIMIT:
        raise InvalidPayload(what, path, f"is nested more than {DEPTH_LIMIT} deep")
    match value:
        case None | bool():
            return
        case str() | int() | float() if type(value) not in _PLAIN and not isinstance(value, Enum):
            raise InvalidPayload(what, path, f"is {kind_of(value)}; convert it to plain text or a plain number")
        case str():
            _check_text(value, what, path)
        case int() | float():
            _check_number(value, what, path)
        case dict():
            _check_object(value, what, path, depth)
        case list() | tuple():
            _check_items(value, what, path, depth)
        case Awaitable():
            raise InvalidPayload(what, path, f"is {kind_of(value)}; await it first")
        case _:
            raise InvalidPayload(what, path, f"is {kind_of(value)}; convert it to text or numbers first")


def _check_number(value: int | float, what: str, path: str) -> None:
    if isinstance(value, int):
        if abs(value) >= 10**DIGIT_LIMIT:
            raise InvalidPayload(what, path, f"has more than {DIGIT_LIMIT} digits; pass it as text")
    elif not math.isfinite(value):
        raise InvalidPayload(what, path, f"is {value}, which JSON does not have; use None or text")


def _check_items(value: Sequence[Any], what: str, path: str, depth: int) -> None:
    for index, item in enumerate(value):
        _check(item, what, shortened(f"{path}[{index}]", LONGEST_PATH), depth + 1)


def _check_object(value: dict[Any, Any], what: str, path: str, depth: int) -> None:
    for key, item in value.items():
        if not isinstance(key, str):
            raise InvalidPayload(what, path, f"has the key {shown(key)}; JSON keys are text")
        below = shortened(f"{path}.{on_one_line(key)}", LONGEST_PATH)
        _check_text(key, what, below)
        _check(item, what, below, depth + 1)


def _check_text(text: str, what: str, path: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidPayload(what, path, "has half of a surrogate pair, which no UTF-8 text can hold") from None
