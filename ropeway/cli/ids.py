"""Short ids: the last characters of a job's id, as lists show and commands accept them."""

from __future__ import annotations

import re
from typing import Final

_SHOWN: Final = 8
_SHORT: Final = re.compile(r"[0-9a-f-]{4,35}")
"""At least four characters: fewer would match too many jobs."""


def short_id(id: str) -> str:
    """The end of a generated id: it begins with the time, so only its end distinguishes jobs of the same moment."""
    return id[-_SHOWN:] if _is_made(id) else id


def is_short(given: str) -> bool:
    """True if it may be the end of a generated id; ids given by the application are never shortened."""
    return _SHORT.fullmatch(given.lower()) is not None


def is_end_of(given: str, id: str) -> bool:
    return _is_made(id) and id.endswith(given.lower())


def _is_made(id: str) -> bool:
    return len(id) == 36 and id.count("-") == 4
