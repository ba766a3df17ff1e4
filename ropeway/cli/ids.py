"""Short ids: the last characters of a job's id, as lists show and commands accept them."""

from __future__ import annotations

import re
from typing import Final

_SHOWN: Final = 8
_ROOM_FOR_WHOLE_IDS: Final = 130
SHORTEST: Final = 4
"""Fewer letters would fit too many jobs."""
_SHORT: Final = re.compile(rf"[0-9a-f-]{{{SHORTEST},35}}")


def short_id(id: str) -> str:
    """The end of a generated id: it begins with the time, so only its end distinguishes jobs of the same moment."""
    return id[-_SHOWN:] if _is_made(id) else id


def is_narrow(room: int | None) -> bool:
    """True if a terminal of this width is too narrow for whole ids; None stands for no terminal."""
    return room is not None and room < _ROOM_FOR_WHOLE_IDS


def is_short(given: str) -> bool:
    """True if it may be the end of a generated id; ids given by the application are never shortened."""
    return _SHORT.fullmatch(given.lower()) is not None


def is_too_short(given: str) -> bool:
    """True if it looks like the end of an id, but is too short to be accepted as one."""
    return is_short(given.rjust(SHORTEST, "0")) and len(given) < SHORTEST


def is_end_of(given: str, id: str) -> bool:
    return _is_made(id) and id.endswith(given.lower())


def _is_made(id: str) -> bool:
    return len(id) == 36 and id.count("-") == 4
