"""What jobs, logs and errors hold, made safe for a terminal."""

from __future__ import annotations

import re
from typing import Final

_UNSAFE: Final = re.compile(
    # Control characters could clear the screen or forge lines; the others turn text around or hide it.
    r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)


def printable(text: str) -> str:
    """Several lines stay several lines; nothing else in it can move the cursor or change a colour."""
    return _UNSAFE.sub(lambda found: found[0].encode("unicode_escape").decode(), text.replace("\t", "    "))


def one_line(text: str) -> str:
    return printable(text).replace("\n", "\\n")
