"""Checks of numbers that users give."""

from __future__ import annotations

from operator import index
from typing import Final

from ..errors import InvalidOption
from ..showing import shown

MOST: Final = 2**31
"""A limit above every sensible value, which every store can hold."""


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
