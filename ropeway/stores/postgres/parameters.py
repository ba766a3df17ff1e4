"""Encoding of statement parameters: arrays of text in the binary format, which is fastest, the rest as text."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

Parameter: TypeAlias = tuple[bytes | None, int]
"""The value, and whether it is binary."""

NULL: Final[Parameter] = (None, 0)
_TEXT: Final = 25
_MOST: Final = 2**62
_LENGTHS: Final = [length.to_bytes(4, "big") for length in range(512)]
_ABSENT: Final = (-1).to_bytes(4, "big", signed=True)
_head = struct.Struct(">iiIii").pack
_TRUE: Final[Parameter] = (b"t", 0)
_FALSE: Final[Parameter] = (b"f", 0)


def text(value: str | None) -> Parameter:
    return NULL if value is None else (value.encode(), 0)


def number(value: int | None) -> Parameter:
    return NULL if value is None else (b"%d" % value, 0)


def amount(value: int) -> Parameter:
    """A count, limited to what a bigint holds."""
    return number(max(0, min(value, _MOST)))


def boolean(value: bool | None) -> Parameter:
    return NULL if value is None else _TRUE if value else _FALSE


def numbers(values: Iterable[int | None] | None) -> Parameter:
    if values is None:
        return NULL
    return ("{" + ",".join("NULL" if value is None else str(value) for value in values) + "}").encode(), 0


def booleans(values: Iterable[bool | None] | None) -> Parameter:
    if values is None:
        return NULL
    return ("{" + ",".join("NULL" if value is None else "t" if value else "f" for value in values) + "}").encode(), 0


def texts(values: Sequence[str | None] | None) -> Parameter:
    if values is None:
        return NULL
    pieces = [_head(1, 1, _TEXT, len(values), 1) if values else _head(0, 0, _TEXT, 0, 0)[:12]]
    for value in values:
        if value is None:
            pieces.append(_ABSENT)
        else:
            raw = value.encode()
            length = len(raw)
            pieces += (_LENGTHS[length] if length < 512 else length.to_bytes(4, "big"), raw)
    return b"".join(pieces), 1
