"""Values and types that users gave, as error messages show them: on one line, of bounded length, without raising."""

from __future__ import annotations

import reprlib
from typing import Final

LONGEST_VALUE: Final = 120
"""Characters that one value takes in a message."""
LONGEST_MESSAGE: Final = 3_000
"""Characters of the message of an error about input, a job or a store; the reason of a failed job fits in."""

_short: Final = reprlib.Repr()
_short.maxother = LONGEST_VALUE


def shown(value: object) -> str:
    """The value's `repr`, shortened; its type alone if that raises."""
    try:
        # Text is cut before it is quoted, so that the quotes stay.
        text = repr(shortened(str.__str__(value), LONGEST_VALUE - 2)) if isinstance(value, str) else _short.repr(value)
    except Exception:  # noqa: BLE001 - a repr can raise anything
        text = f"<{type(value).__name__} that cannot be shown>"
    return on_one_line(text)


def told_by(error: BaseException) -> str:
    """What an error says; its type if that is nothing, or cannot be had."""
    try:
        text = " ".join(str(error)[:LONGEST_MESSAGE].split())
    except Exception:  # noqa: BLE001 - as above
        text = ""
    return on_one_line(text or type(error).__name__, LONGEST_MESSAGE // 3)


def on_one_line(text: str, limit: int = LONGEST_VALUE) -> str:
    """Text of any origin without control characters and halves of surrogate pairs, and no longer than the limit."""
    text = shortened(str.__str__(text), limit)
    return text if text.isprintable() else shortened("".join(map(_escaped, text)), limit)


def shortened(text: str, limit: int) -> str:
    """Cut in the middle: the end of a message says what to do."""
    if len(text) <= limit:
        return text
    tail = limit // 3
    return f"{text[: limit - tail - 1]}…{text[-tail:]}"


def kind_of(value: object) -> str:
    """The name of its type with an article: `a date`, `an object`."""
    return with_article(on_one_line(type(value).__qualname__))


def with_article(noun: str) -> str:
    return f"{'an' if noun[:1] in _VOWELS else 'a'} {noun}"


_VOWELS: Final = tuple("aeiouAEIOU")


def _escaped(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode()
