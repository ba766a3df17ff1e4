"""Switches, words and functions that users give, checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ..errors import InvalidOption

F = TypeVar("F")


def yes_or_no(option: str, given: object) -> bool:
    """Text is refused: "no" would count as yes."""
    if not isinstance(given, bool):
        raise InvalidOption(option, f"cannot be {given!r:.80}: use True or False")
    return given


def one_of(first: str, second: str) -> Callable[[str, object], Any]:
    def read(option: str, given: object) -> object:
        if given not in (first, second):
            raise InvalidOption(option, f'cannot be {given!r:.80}: use "{first}" or "{second}"')
        return given

    return read


def function_or_none(option: str, given: F) -> F:
    if given is not None and not callable(given):
        raise InvalidOption(option, f"cannot be {given!r:.80}: give a function")
    return given
