"""Making text from jobs, logs and errors safe for a terminal."""

from __future__ import annotations

from typing import Final
from unicodedata import category

_UNSAFE: Final = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Control characters could clear the screen or forge lines, format characters reverse or hide text."""


def printable(text: str) -> str:
    """Keeps line breaks; nothing else in the result can move the cursor or change a colour."""
    if text.isprintable():
        return text
    return "".join(map(_shown, text.replace("\t", "    ")))


def one_line(text: str) -> str:
    return printable(text).replace("\n", "\\n")


def _shown(letter: str) -> str:
    is_safe = letter == "\n" or category(letter) not in _UNSAFE
    return letter if is_safe else letter.encode("unicode_escape").decode()
