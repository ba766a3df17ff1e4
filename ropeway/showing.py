"""Formatting of users' values for messages: on one line, of bounded length, and never raising. Numbers in words."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from typing import Final

LONGEST_VALUE: Final = 120
"""Most characters of one value in a message."""
LONGEST_MESSAGE: Final = 3_000
"""Most characters of an error's message; the reason of a failed job fits in."""

_short: Final = reprlib.Repr()
_short.maxother = LONGEST_VALUE


def shown(value: object) -> str:
    """The value's `repr`, shortened; its type alone if that raises."""
    try:
        # Text is shortened before it is quoted, so that it keeps its quotes.
        text = repr(shortened(str.__str__(value), LONGEST_VALUE - 2)) if isinstance(value, str) else _short.repr(value)
    except Exception:  # noqa: BLE001 - a repr can raise anything
        text = f"<{type(value).__name__} that cannot be shown>"
    return on_one_line(text)


def error_text(error: BaseException) -> str:
    """The message of an error; its type if the message is empty or raises."""
    try:
        text = " ".join(str(error)[:LONGEST_MESSAGE].split())
    except Exception:  # noqa: BLE001 - as above
        text = ""
    return on_one_line(text or type(error).__name__, LONGEST_MESSAGE // 3)


def on_one_line(text: str, limit: int = LONGEST_VALUE) -> str:
    """Text without control characters and lone surrogates, and no longer than the limit."""
    text = shortened(str.__str__(text), limit)
    return text if text.isprintable() else shortened("".join(map(_escaped, text)), limit)


def shortened(text: str, limit: int) -> str:
    """Shortened in the middle, because the end of a message says what to do."""
    if len(text) <= limit:
        return text
    tail = limit // 3
    return f"{text[: limit - tail - 1]}…{text[-tail:]}"


def kind_of(value: object) -> str:
    """The name of its type with an article: `a date`, `an object`."""
    return with_article(on_one_line(type(value).__qualname__))


def either(words: Sequence[str]) -> str:
    """As in "a, b or c"."""
    return " or ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def with_article(noun: str) -> str:
    return f"{'an' if noun[:1] in _VOWELS else 'a'} {noun}"


def plural(count: int, noun: str, several: str = "") -> str:
    """As in "1 job" and "1,234 jobs"."""
    return f"{count:,} {noun if count == 1 else several or f'{noun}s'}"


def length(seconds: float) -> str:
    """A duration in its largest unit: `5s`, `3m`, `2h`, `4d`."""
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= size * (2 if unit == "d" else 1):
            return f"{seconds / size:.0f}{unit}"
    return f"{seconds:.0f}s"


_VOWELS: Final = tuple("aeiouAEIOU")


def _escaped(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode()
