"""Checks of booleans, choices and functions that users give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ..errors import InvalidOption
from ..showing import shown

F = TypeVar("F")


def yes_or_no(option: str, given: object) -> bool:
    """Refuses text, because "no" would count as True."""
    if not isinstance(given, bool):
        raise InvalidOption(option, f"cannot be {shown(given)}: use True or False")
    return given


def is_word(given: object, *words: str) -> bool:
    """True if it is text and one of these; other objects may define any equality."""
    return isinstance(given, str) and given in words


def one_of(*words: str) -> Callable[[str, object], Any]:
    *others, last = (f'"{word}"' for word in words)

    def read(option: str, given: object) -> object:
        if not is_word(given, *words):
            raise InvalidOption(option, f"cannot be {shown(given)}: use {', '.join(others)} or {last}")
        return given

    return read


def function_or_none(option: str, given: F) -> F:
    if given is not None and not callable(given):
        raise InvalidOption(option, f"cannot be {shown(given)}: give a function")
    return given
