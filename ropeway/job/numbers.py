"""Numbers that users give, checked."""

from __future__ import annotations

from typing import Final

from ..errors import InvalidOption

MOST: Final = 2**31
"""More than anybody means, and every store can keep it."""


def whole(option: str, given: object, least: int, most: int = MOST) -> int:
    if isinstance(given, bool) or not isinstance(given, int):
        raise InvalidOption(option, f"cannot be {given!r:.80}: use a whole number")
    if not least <= given <= most:
        raise InvalidOption(option, f"cannot be {given}: use {least} to {most}")
    # Not what a subclass makes of it, which no store could write.
    return int(given)


def fraction(option: str, given: object) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given <= 1:
        raise InvalidOption(option, f"cannot be {given!r:.80}: use a number from 0 to 1")
    return float(given)
