"""Short ids: the last letters of a job's id, as lists show them and commands take them."""

from __future__ import annotations

import re
from typing import Final

_SHOWN: Final = 8
_SHORT: Final = re.compile(r"[0-9a-f-]{4,35}")
"""From four letters on: fewer would fit too many jobs."""


def short_id(id: str) -> str:
    """The end of an id that Ropeway made: it begins with the time, so that only its end tells neighbours apart."""
    return id[-_SHOWN:] if _is_made(id) else id


def is_short(given: str) -> bool:
    """Whether it may be the end of an id that Ropeway made; ids of the application's own are never shortened."""
    return _SHORT.fullmatch(given.lower()) is not None


def is_end_of(given: str, id: str) -> bool:
    return _is_made(id) and id.endswith(given.lower())


def _is_made(id: str) -> bool:
    return len(id) == 36 and id.count("-") == 4
