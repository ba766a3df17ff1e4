"""What jobs, logs and errors hold, made safe for a terminal."""

from __future__ import annotations

from typing import Final
from unicodedata import category

_UNSAFE: Final = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Controls could clear the screen or forge lines, formats turn text around or hide it; halves of pairs show nothing."""


def printable(text: str) -> str:
    """Several lines stay several lines; nothing else in it can move the cursor or change a colour."""
    if text.isprintable():
        return text
    return "".join(map(_shown, text.replace("\t", "    ")))


def one_line(text: str) -> str:
    return printable(text).replace("\n", "\\n")


def _shown(letter: str) -> str:
    is_safe = letter == "\n" or category(letter) not in _UNSAFE
    return letter if is_safe else letter.encode("unicode_escape").decode()
