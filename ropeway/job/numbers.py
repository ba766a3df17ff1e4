"""Checks of numbers that users give."""

from __future__ import annotations

from operator import index
from typing import Annotated, Final, TypeAlias

import msgspec

from ..errors import InvalidOption
from ..showing import shown

MOST: Final = 2**31 - 1
"""A limit above every sensible value, which every store can hold."""
MOST_URGENT: Final = -(2**21)
LEAST_URGENT: Final = 2**21
Amount: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=MOST)]
"""How many; the bounds are checked when it is decoded."""
Priority: TypeAlias = Annotated[int, msgspec.Meta(ge=MOST_URGENT, le=LEAST_URGENT)]
Version: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
"""Of a stored value, which counts its changes."""


def whole(option: str, given: object, least: int, most: int = MOST) -> int:
    if isinstance(given, bool) or not isinstance(given, int):
        raise InvalidOption(option, f"cannot be {shown(given)}: use a whole number")
    # Plain `int` instead of a subclass, which stores could not encode.
    number = index(given)
    if not least <= number <= most:
        raise InvalidOption(option, f"cannot be {shown(number)}: use {least} to {most}")
    return number


def fraction(option: str, given: object) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given <= 1:
        raise InvalidOption(option, f"cannot be {shown(given)}: use a number from 0 to 1")
    return float(given)
